"""IPC by the names of dpctl's development branch, and the differences from it."""

import pytest
import zeusm.memory as zm

pytestmark = pytest.mark.once

PATTERN = bytes(range(256)) * 40


def test_functions_of_dpctl():
    memory = zm.MemoryUSMDevice(len(PATTERN))
    memory.copy_from_host(PATTERN)
    raw = zm.SyclIPCGetMemHandle(memory)
    assert type(raw) is bytes
    mapped = zm.SyclIPCOpenMemHandle(raw, memory.sycl_device, len(PATTERN))
    other = zm.SyclIPCOpenMemHandle(raw, memory.sycl_device, len(PATTERN))
    assert isinstance(mapped, zm.MemoryIPCDevice)
    assert mapped.tobytes() == PATTERN
    zm.SyclIPCCloseMemHandle(mapped)
    zm.SyclIPCCloseMemHandle(mapped)
    assert mapped.is_closed
    assert mapped._pointer == mapped.nbytes == 0
    assert isinstance(mapped, zm.MemoryIPCDevice)
    assert other._pointer != 0
    zm.IPCMemoryHandle.close_mapping(other)


def test_errors_of_dpctl():
    for memory in [zm.MemoryUSMShared(64), zm.MemoryUSMHost(64), "memory"]:
        with pytest.raises(TypeError):
            zm.SyclIPCGetMemHandle(memory)
    memory = zm.MemoryUSMDevice(64)
    with pytest.raises(RuntimeError, match="non-IPC"):
        zm.SyclIPCCloseMemHandle(memory)
    with pytest.raises(TypeError):
        zm.SyclIPCCloseMemHandle("memory")
    with pytest.raises(TypeError):
        zm.SyclIPCOpenMemHandle(zm.SyclIPCGetMemHandle(memory), object(), 64)
    with pytest.raises(TypeError):
        zm.MemoryIPCDevice(64)
    assert zm.IPCMemoryHandle.is_available() is True
