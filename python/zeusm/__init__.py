"""USM memory for Intel GPUs straight from Level Zero, shared with SYCL's Python packages without a copy.

Import it before dpctl: on a machine without a usable Intel GPU it brings a Level Zero runtime on the CPU, which a SYCL
runtime then finds as ``level_zero:gpu:0``.
"""

from zeusm._zeusm import (
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
    "pointer_attributes",
    "runtime",
]

_start()
