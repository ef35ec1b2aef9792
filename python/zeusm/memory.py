"""USM memory objects with the interface of ``dpctl.memory``."""

from zeusm._history import History, record_history, snapshot
from zeusm._pickling import _from_pickle as _from_pickle
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
