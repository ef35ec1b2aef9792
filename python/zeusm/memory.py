"""USM memory objects with the interface of ``dpctl.memory``."""

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
from zeusm._zeusm import __pyx_capi__ as __pyx_capi__  # Cython looks for it here
from zeusm._zeusm import _from_pickle as _from_pickle  # pickles refer to it by this module
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
