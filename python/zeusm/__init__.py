"""USM memory for Intel GPUs, allocated through Level Zero and shared with SYCL's Python packages without a copy.

Import it before dpctl: on a machine without a usable Intel GPU it loads a Level Zero runtime on the CPU, which a SYCL
runtime then lists as ``level_zero:gpu:0``.
"""

import os as _os
import sys as _sys

from zeusm import memory as memory
from zeusm._pickling import _array_from_pickle as _array_from_pickle
from zeusm._zeusm import (
    _C_API,
    Event,
    IPCEventHandle,
    LevelZeroError,
    PointerAttributes,
    Runtime,
    RuntimeSelectionWarning,
    UsmArray,
    __version__,
    _start,
    as_usm_array,
    asarray,
    empty,
    from_arrow,
    from_dlpack,
    from_sycl_usm_array_interface,
    pointer_attributes,
    runtime,
    set_cpu_devices,
)

__all__ = [
    "_C_API",
    "Event",
    "IPCEventHandle",
    "LevelZeroError",
    "PointerAttributes",
    "Runtime",
    "RuntimeSelectionWarning",
    "UsmArray",
    "__version__",
    "as_usm_array",
    "asarray",
    "empty",
    "from_arrow",
    "from_dlpack",
    "from_sycl_usm_array_interface",
    "get_include",
    "pointer_attributes",
    "runtime",
    "set_cpu_devices",
]


def get_include() -> str:
    """Return the directory of ``zeusm.h`` and ``zeusm.pc``, to compile programs that use the C API.

    Examples
    --------
    >>> import os, zeusm
    >>> sorted(os.listdir(zeusm.get_include()))
    ['zeusm.h', 'zeusm.pc']
    """
    return _os.path.join(_os.path.dirname(__file__), "include")


def load_ipython_extension(shell: object) -> None:
    """Have IPython know the magic ``%%zeusm_memory``: ``%load_ext zeusm`` calls this."""
    from zeusm._ipython import load

    load(shell)


_start()
if "numba" in _sys.modules:  # Otherwise Numba calls zeusm_numba at its start.
    from zeusm._numba import register

    register()
    del register
