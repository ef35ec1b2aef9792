"""IPC handles of memory that other packages have allocated."""

import dpctl.memory
import dpnp
import numpy as np
import pytest
import zeusm
import zeusm.memory as zm

OPEN = """
import sys
import zeusm.memory as zm

with zm.IPCMemoryHandle.open(bytes.fromhex(sys.argv[1])) as memory:
    print(memory.tobytes().hex())
    memory.memset(7)
"""


def opened(fresh, handle):
    """What another process reads by the handle, before it fills the memory with 7."""
    return bytes.fromhex(fresh(OPEN, handle.to_bytes().hex()).stdout)


@pytest.mark.parametrize("start", [0, 5])
def test_an_array_of_dpnp(fresh, usm_type, start):
    """SYCL may cut it from a larger allocation of the driver, which is exported with an offset."""
    array = dpnp.arange(40, dtype="int32", usm_type=usm_type)[start:]
    expected = array.asnumpy()
    memory = zm.as_usm_memory(array)
    with memory.ipc_handle() as handle:
        assert (handle.usm_type, handle.nbytes) == (usm_type, memory.nbytes)
        base = zeusm.pointer_attributes(memory._pointer, array.sycl_context).base
        assert handle.offset == memory._pointer - base
        assert opened(fresh, handle) == expected.tobytes()
    assert (array.asnumpy().view("u1") == 7).all()


def test_memory_of_dpctl(fresh):
    memory = dpctl.memory.MemoryUSMShared(3000)
    memory.copy_from_host(np.arange(3000, dtype="u1"))
    handle = zm.as_usm_memory(memory)[16:].ipc_handle()
    assert opened(fresh, handle) == np.arange(16, 3000, dtype="u1").tobytes()
    assert bytes(memory)[15:18] == bytes([15, 7, 7])


def test_a_queue_of_its_own_context(fresh):
    context = dpctl.SyclContext("level_zero:gpu")
    queue = dpctl.SyclQueue(context, context.get_devices()[0])
    array = dpnp.full(9, 3, dtype="u1", sycl_queue=queue)
    with zm.as_usm_memory(array).ipc_handle() as handle:
        assert opened(fresh, handle) == bytes([3]) * 9


def test_the_handle_keeps_the_memory_and_ends_the_export(fresh):
    array = dpnp.full(100, 5, dtype="u1")
    handle = zm.as_usm_memory(array).ipc_handle()
    other = zm.as_usm_memory(array)[50:].ipc_handle()
    array = None
    assert opened(fresh, handle) == bytes([5]) * 100
    raw = handle.to_bytes()
    handle.close()
    with pytest.raises(zm.IPCError, match="freed by its owner"):
        zm.IPCMemoryHandle.open(raw)
    assert opened(fresh, other) == bytes([7]) * 50


def test_memory_of_another_process_is_not_exported_again():
    opened = zm.IPCMemoryHandle.open(zm.MemoryUSMDevice(64).ipc_handle())
    with pytest.raises(ValueError, match="pass that handle on"):
        opened.ipc_handle()


def test_memory_of_another_process_that_dpctl_has_taken(fresh):
    """The driver refuses to export it, which does not say why."""
    handle = zm.MemoryUSMDevice(100).ipc_handle()
    fresh(
        """
        import sys
        import zeusm.memory as zm
        import dpctl.memory

        memory = zm.IPCMemoryHandle.open(bytes.fromhex(sys.argv[1]))
        try:
            zm.as_usm_memory(dpctl.memory.as_usm_memory(memory)).ipc_handle()
        except ValueError as error:
            assert "another process" in str(error), error
        else:
            raise AssertionError
        """,
        handle.to_bytes().hex(),
    )
