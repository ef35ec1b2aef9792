"""Imports zeusm before the packages that look for SYCL devices, in every interpreter of an environment.

`python -m zeusm enable` writes a path file that calls `start` whenever an interpreter of the environment starts. Nothing of
zeusm is imported then: an import hook waits for the first import of such a package. This module imports only what the start
of the interpreter has imported already.
"""

import os
import sys

#: The environment variable: 0 disables `start`.
VARIABLE = "ZEUSM_ENABLE"

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

    _failed = False

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name not in PACKAGES or self._failed:
            return
        try:
            import zeusm  # noqa: F401
        except Exception as error:
            self._failed = True
            import warnings

            warnings.warn(
                f"zeusm is enabled in this environment, and cannot be imported: {error!r}; remove {FILE} from the "
                f"site-packages to disable it, or set {VARIABLE}=0",
                RuntimeWarning,
                stacklevel=2,
            )


def is_off() -> bool:
    """Whether the variable disables it. An interpreter that starts must not fail, so an unknown word is no."""
    return os.environ.get(VARIABLE, "").strip().lower() in ("0", "false", "no", "off")


def start() -> None:
    """Install the import hook, unless the variable forbids it."""
    if not is_off():
        sys.meta_path.insert(0, _Hook())
