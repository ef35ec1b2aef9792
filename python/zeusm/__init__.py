"""USM memory for Intel GPUs straight from Level Zero, shared with SYCL's Python packages without a copy.

Import it before dpctl: on a machine without a usable Intel GPU it brings a Level Zero runtime on the CPU, which a SYCL
runtime then finds as ``level_zero:gpu:0``.
"""

import sys
from pathlib import Path

from zeusm._zeusm import (
    _C_API,
    Event,
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
    from_dlpack,
    from_sycl_usm_array_interface,
    pointer_attributes,
    runtime,
)

__all__ = [
    "_C_API",
    "Event",
    "LevelZeroError",
    "PointerAttributes",
    "Runtime",
    "RuntimeSelectionWarning",
    "UsmArray",
    "__version__",
    "as_usm_array",
    "asarray",
    "empty",
    "from_dlpack",
    "from_sycl_usm_array_interface",
    "get_include",
    "pointer_attributes",
    "runtime",
]


def get_include() -> str:
    """The folder of ``zeusm.h``, for compiling programs that use the C API.

    Examples
    --------
    >>> import os, zeusm
    >>> os.listdir(zeusm.get_include())
    ['zeusm.h']
    """
    return str(Path(__file__).parent / "include")


_start()
if "numba" in sys.modules:  # Else Numba calls zeusm_numba when it starts.
    from zeusm._numba_dpex import register

    register()
    del register
