"""Imports zeusm before the packages that look for SYCL devices, in every interpreter of an environment.

`python -m zeusm enable` writes a path file that calls `start` whenever an interpreter of the environment starts. Nothing of
zeusm is imported then: an import hook waits for the first import of such a package. This module imports only what the start
of the interpreter has imported already.
"""

import os
import sys

#: The environment variable: 0 disables `start`.
VARIABLE = "ZEUSM_ENABLE"
# The words of zeusm's switches.
ON = ("1", "true", "yes", "on")
OFF = ("0", "false", "no", "off")

#: The packages that load a SYCL runtime. It looks for devices at its first use, once.
PACKAGES = frozenset({"dpctl", "dpnp", "numba_dpex", "onedal", "daal4py", "sklearnex"})

#: The path file, and its line. An interpreter starts as before if zeusm has been uninstalled or damaged.
FILE = "zeusm_start.pth"
LINE = (
    "import sys; "  # A line that begins otherwise is a folder.
    'exec("try:\\n import zeusm_start\\n zeusm_start.start()\\nexcept Exception: pass")'
)


class _Hook:
    """Imports zeusm before one of the packages. It stays in place: `importlib` iterates over the list of hooks."""

    _is_done = False

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name not in PACKAGES or self._is_done:
            return
        self._is_done = True
        if value() not in ("", *ON, *OFF):
            warn(f"{VARIABLE}={value()!r} is not {', '.join(ON + OFF)}: zeusm stays enabled")
        try:
            import zeusm  # noqa: F401
        except Exception as error:
            warn(
                f"zeusm is enabled in this environment, and cannot be imported: {error!r}; remove {FILE} from the "
                f"site-packages to disable it, or set {VARIABLE}=0"
            )


def warn(text: str) -> None:
    """Warn at the import of the package."""
    import warnings

    warnings.warn(text, RuntimeWarning, stacklevel=3)


def value() -> str:
    """The variable's word. An interpreter that starts must not fail, so an unknown one does not disable it."""
    return os.environ.get(VARIABLE, "").strip().lower()


def is_off() -> bool:
    """Whether the variable disables it."""
    return value() in OFF


def start() -> None:
    """Install the import hook, unless the variable forbids it."""
    if not is_off():
        sys.meta_path.insert(0, _Hook())
