"""USM memory for Intel GPUs straight from Level Zero, shared with SYCL's Python packages without a copy.

Import it before dpctl: on a machine without a usable Intel GPU it brings a Level Zero runtime on the CPU, which a SYCL
runtime then finds as ``level_zero:gpu:0``.
"""

from zeusm._zeusm import (
    LevelZeroError,
    Runtime,
    RuntimeSelectionWarning,
    __version__,
    _start,
    runtime,
)

__all__ = ["LevelZeroError", "Runtime", "RuntimeSelectionWarning", "__version__", "runtime"]

_start()
