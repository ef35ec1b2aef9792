"""USM memory objects: the twin of ``dpctl.memory``."""

from zeusm._zeusm import (
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
)
from zeusm._zeusm import _from_pickle as _from_pickle  # pickles look for it here
from zeusm._zeusm import _Memory as _Memory

__all__ = [
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
]
