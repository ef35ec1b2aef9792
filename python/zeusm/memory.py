"""USM memory objects with the interface of ``dpctl.memory``."""

from zeusm._zeusm import (
    TRACEMALLOC_DOMAIN,
    IPCError,
    IPCMemoryHandle,
    MemoryIPCDevice,
    MemoryIPCHost,
    MemoryIPCShared,
    MemoryPool,
    MemoryUSMDevice,
    MemoryUSMHost,
    MemoryUSMShared,
    PoolReport,
    PoolScope,
    PoolStatistics,
    SyclIPCCloseMemHandle,
    SyclIPCGetMemHandle,
    SyclIPCOpenMemHandle,
    USMAllocationError,
    as_usm_memory,
    get_pool,
    mem_get_info,
)
from zeusm._zeusm import __pyx_capi__ as __pyx_capi__  # Cython looks for it here
from zeusm._zeusm import _from_pickle as _from_pickle  # pickles refer to it by this module
from zeusm._zeusm import _Memory as _Memory

__all__ = [
    "TRACEMALLOC_DOMAIN",
    "History",
    "IPCError",
    "IPCMemoryHandle",
    "MemoryIPCDevice",
    "MemoryIPCHost",
    "MemoryIPCShared",
    "MemoryPool",
    "MemoryUSMDevice",
    "MemoryUSMHost",
    "MemoryUSMShared",
    "PoolReport",
    "PoolScope",
    "PoolStatistics",
    "SyclIPCCloseMemHandle",
    "SyclIPCGetMemHandle",
    "SyclIPCOpenMemHandle",
    "USMAllocationError",
    "as_usm_memory",
    "get_pool",
    "mem_get_info",
    "record_history",
    "snapshot",
]

# Few programs record a history, and its import takes a quarter of the time of this one, so the first use imports it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from zeusm._history import History, record_history, snapshot
else:

    def __getattr__(name):
        if name not in ("History", "record_history", "snapshot"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from zeusm import _history

        return getattr(_history, name)

    def __dir__():
        return sorted({*globals(), *__all__})
