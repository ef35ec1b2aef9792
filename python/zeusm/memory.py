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
    USMAllocationError,
    as_usm_memory,
    get_pool,
    mem_get_info,
    set_memory_limit,
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
    "set_memory_limit",
    "snapshot",
]


def SyclIPCGetMemHandle(usm_memory: MemoryUSMDevice) -> bytes:
    """A handle of USM-device memory, as bytes.

    For other kinds, use :class:`IPCMemoryHandle`.

    Parameters
    ----------
    usm_memory : MemoryUSMDevice
        Memory that zeusm allocated, or a slice of it.

    Returns
    -------
    bytes
        The argument of `SyclIPCOpenMemHandle` in another process.

    Raises
    ------
    TypeError
        When it is not USM-device memory.
    IPCError
        When the driver does not support IPC of memory, and always on Windows.

    Examples
    --------
    >>> import zeusm.memory as zm
    >>> memory = zm.MemoryUSMDevice(64)
    >>> there = zm.SyclIPCOpenMemHandle(zm.SyclIPCGetMemHandle(memory))
    >>> there.nbytes
    64
    >>> zm.SyclIPCCloseMemHandle(there)
    """
    if not isinstance(usm_memory, MemoryUSMDevice):
        raise TypeError(
            f"SyclIPCGetMemHandle takes USM-device memory, not {type(usm_memory)}: for other kinds use IPCMemoryHandle"
        )
    return IPCMemoryHandle(usm_memory).to_bytes()


def SyclIPCOpenMemHandle(
    handle_bytes: bytes | bytearray | IPCMemoryHandle,
    device: object = None,
    nbytes: int | None = None,
) -> MemoryIPCDevice | MemoryIPCShared | MemoryIPCHost:
    """Opens a handle; the same as :meth:`IPCMemoryHandle.open`.

    Parameters
    ----------
    handle_bytes : bytes
        The result of `SyclIPCGetMemHandle` in another process.
    device : dpctl.SyclDevice, optional
        The device to open it on; by default the device of default allocations.
    nbytes : int, optional
        The number of bytes to open, from the first one; by default all.

    Returns
    -------
    MemoryIPCDevice

    Examples
    --------
    >>> import zeusm.memory as zm
    >>> memory = zm.MemoryUSMDevice(64)
    >>> data = zm.SyclIPCGetMemHandle(memory)
    >>> opened = zm.SyclIPCOpenMemHandle(data, memory.sycl_device, 64)
    >>> opened.nbytes
    64
    """
    return IPCMemoryHandle.open(handle_bytes, device, nbytes)


def SyclIPCCloseMemHandle(usm_memory: _Memory) -> None:
    """Closes memory from `SyclIPCOpenMemHandle`; the same as its `close()`.

    Parameters
    ----------
    usm_memory : MemoryIPCDevice
        Memory from `SyclIPCOpenMemHandle`; closing it again has no effect.

    Examples
    --------
    >>> import zeusm.memory as zm
    >>> memory = zm.MemoryUSMDevice(64)
    >>> data = zm.SyclIPCGetMemHandle(memory)
    >>> opened = zm.SyclIPCOpenMemHandle(data, memory.sycl_device, 64)
    >>> zm.SyclIPCCloseMemHandle(opened)
    >>> opened.is_closed
    True
    """
    IPCMemoryHandle.close_mapping(usm_memory)
