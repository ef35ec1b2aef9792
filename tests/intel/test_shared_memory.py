"""Shared memory on devices whose driver moves it as a whole from host to device and back."""

import os

import pytest
import zeusm.memory
from on_the_simulator import MACHINE, MOVING


def test_a_neighbour_may_be_looked_at_while_a_block_is_filled(program):
    # The engine is slow, so the host looks at the neighbour before the fill has begun. Where both are of one allocation
    # of the driver's, it moves to the host with the neighbour, and the fill goes to the place that it has left.
    lost = program(
        """
        from zeusm.memory import MemoryUSMShared

        block, neighbour = MemoryUSMShared(4096), MemoryUSMShared(4096)
        lost = 0
        for _ in range(30):
            memoryview(block)[:] = bytes(4096)
            fill = block.memset_async(7)
            sum(memoryview(neighbour)[::64])
            fill.wait()
            lost += bytes(memoryview(block)) != bytes([7]) * 4096
        print(lost)
        """,
        XE_SIM_SLOW="1",
    )
    assert int(lost) == 0


@pytest.fixture
def used():
    """Shared memory that the device used last."""
    memory = zeusm.memory.MemoryUSMShared(1 << 16)
    memory.memset_async(7).wait()
    return memory


def calls(memory, file):
    """System calls that read or write the memory."""
    yield lambda: os.write(file, memoryview(memory))
    yield lambda: os.writev(file, [memoryview(memory)])
    yield lambda: os.readv(file, [memoryview(memory)])
    yield lambda: os.preadv(file, [memoryview(memory)], 0)


@pytest.mark.parametrize("number", range(4), ids=["write", "writev", "readv", "preadv"])
def test_a_system_call_on_what_the_device_used_last(used, number, tmp_path):
    """The kernel does not serve the page fault by which the driver would move the memory: EFAULT."""
    (tmp_path / "file").write_bytes(bytes(1 << 16))
    file = os.open(tmp_path / "file", os.O_RDWR)
    call = list(calls(used, file))[number]
    if MACHINE in MOVING:
        with pytest.raises(OSError, match="Bad address"):
            call()
        assert memoryview(used)[0] == 7  # The host's own access moves it.
    assert call() > 0
    os.close(file)


def test_copy_to_host_reads_what_the_device_wrote_last(used, tmp_path):
    """What to do instead: a copy does not meet the fault."""
    file = tmp_path / "bytes"
    file.write_bytes(bytes(used.copy_to_host()))
    assert file.read_bytes() == bytes([7]) * (1 << 16)


def test_from_a_file_by_way_of_the_host(used, tmp_path):
    file = tmp_path / "bytes"
    file.write_bytes(bytes([9]) * (1 << 16))
    used.copy_from_host(file.read_bytes())
    assert used.tobytes() == bytes([9]) * (1 << 16)


def test_a_handler_of_faults_that_came_later_is_no_loss(program):
    """`faulthandler` writes a traceback at the first fault, and hands it on to the driver."""
    out = program(
        """
        import faulthandler
        import os
        import zeusm.memory as zm

        memory = zm.MemoryUSMShared(4096)
        memory.memset(7)
        faulthandler.enable(file=open(os.devnull, "w"))
        print(bytes(memoryview(memory)[:2]))
        """
    )
    assert out.strip() == repr(bytes([7, 7]))
