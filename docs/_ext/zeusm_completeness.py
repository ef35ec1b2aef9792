"""Each public name of the Python packages is in the reference: a missing one is a warning, which ends `make docs`."""

import importlib
from collections.abc import Iterable, Iterator

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

PACKAGES = [
    "zeusm",
    "zeusm.memory",
    "zeusm.torch",
    "zeusm_dask",
    "zeusm_numba",
    "zeusm_ray",
    "zeusm_start",
]


def public(package: str) -> Iterator[str]:
    """The package's public names, and those of the members that its classes define or inherit from private classes; not of
    plain values, which have no docstrings."""
    module = importlib.import_module(package)
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == package
    ]
    for name in getattr(module, "__all__", own):
        if name.startswith("_"):
            continue
        yield f"{package}.{name}"
        thing = getattr(module, name)
        if isinstance(thing, type):
            for kind in thing.__mro__:
                # The classes of Python have pages of their own; those of this package too, but for private ones.
                if kind is thing or kind.__name__.startswith("_"):
                    yield from (
                        f"{package}.{name}.{member}"
                        for member, value in vars(kind).items()
                        if not member.startswith("_") and value.__doc__ != type(value).__doc__
                    )


def missing(documented: Iterable[str], packages: Iterable[str] = PACKAGES) -> list[str]:
    """The public names that are not documented."""
    known = set(documented)
    return sorted({name for package in packages for name in public(package)} - known)


def check(_app: Sphinx, env: BuildEnvironment) -> None:
    for name in missing(env.domains.python_domain.objects):
        logging.getLogger(__name__).warning("%s is public, and not in the reference", name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-check-consistency", lambda app, env: check(app, env))
    return {"parallel_read_safe": True}
