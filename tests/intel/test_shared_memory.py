"""Shared memory on devices whose driver migrates whole allocations between host and device."""

import os

import pytest
import zeusm.memory
from on_the_simulator import MACHINE, MOVING


def test_a_neighbour_may_be_looked_at_while_a_block_is_filled(program):
    # The engine is delayed, so the host reads the neighbour before the fill starts. If both blocks shared a driver
    # allocation, that read would migrate the whole allocation to the host, and the fill would write to the stale device copy.
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


HINTS = "set_read_mostly", "set_preferred_location"
ADVISED = {
    "one memory": [HINTS],
    "in the other order": [HINTS[::-1]],
    "one after the other": [[hint] for hint in HINTS],
}


@pytest.mark.parametrize("of_each", ADVISED.values(), ids=ADVISED)
def test_hints_lose_no_writes_of_the_host(program, of_each):
    """With both hints the driver does not migrate to the device any more, also memory that is allocated later."""
    read = program(
        f"""
        from zeusm.memory import MemoryUSMShared

        def write(memory, value):
            memory.memset(2)
            memoryview(memory)[:] = bytes([value]) * 4096
            read = bytearray(4096)
            memory.copy_to_host_async(read).wait()
            return set(read)

        for hints in {list(map(list, of_each))}:
            memory = MemoryUSMShared(4096)
            for hint in hints:
                memory.mem_advise(hint).wait()
            print(write(memory, 5), write(memory, 6))
            del memory
        print(write(MemoryUSMShared(4096), 5), write(MemoryUSMShared(4096), 6))
        """
    )
    assert read.splitlines() == ["{5} {6}"] * (len(of_each) + 1)


@pytest.mark.skipif(
    MACHINE != "bmg",
    reason="shared memory does not migrate, or each context of one GPU has its own",
)
@pytest.mark.parametrize(
    "write",
    [
        "memory[-64:].copy_from_host(bytes(64))",
        "memory[-64:].memset(5)",
        "memory[-64:].copy_from_device(other)",
    ],
)
def test_a_small_write_does_not_discard_work_of_another_queue(program, write):
    """SYCL's contexts share one of Level Zero, so that two of zeusm's queues may use one allocation."""
    lost = program(
        f"""
        import dpctl
        import zeusm.memory as zm

        class Imported:
            pass

        other = zm.MemoryUSMHost(64)
        device = dpctl.SyclDevice()
        queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        half, lost = 4 << 20, 0
        for _ in range(10):
            memory = zm.MemoryUSMShared(2 * half, queue=queue)
            memory.memset_async(1).wait()
            interface = memory.__sycl_usm_array_interface__
            imported = Imported()
            imported.__sycl_usm_array_interface__ = interface | {{"syclobj": dpctl.SyclQueue(device)}}
            written = zm.as_usm_memory(imported)[:half].memset_async(9)
            {write}
            written.wait()
            lost += memory[:half].tobytes() != bytes([9]) * half
        print(lost)
        """,
        XE_SIM_SLOW="1",
    )
    assert int(lost) == 0


@pytest.mark.parametrize("access", ["tail.view('u1')[:] = 5", "pickle.dumps(tail)"])
def test_a_host_access_does_not_discard_a_blocking_copy_of_another_thread(program, access):
    """The copy is in flight while its thread has released the GIL."""
    lost = program(
        f"""
        import pickle
        import threading
        import time
        import zeusm.memory as zm

        half, lost = 4 << 20, 0
        for n in range(10):
            memory = zm.MemoryUSMShared(2 * half)
            memory.memset_async(1).wait()
            head, tail = memory[:half], memory[-64:]
            thread = threading.Thread(target=head.copy_from_host, args=(bytes([9]) * half,))
            thread.start()
            time.sleep(n * 2e-4)
            {access}
            thread.join()
            lost += memory[:half].tobytes() != bytes([9]) * half
        print(lost)
        """,
        XE_SIM_SLOW="1",
    )
    assert int(lost) == 0


@pytest.fixture
def used():
    """Shared memory that resides on the device, if the driver migrates."""
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
    """The driver migrates memory in a SIGSEGV handler, which does not run for an access by the kernel: EFAULT."""
    (tmp_path / "file").write_bytes(bytes(1 << 16))
    file = os.open(tmp_path / "file", os.O_RDWR)
    call = list(calls(used, file))[number]
    if MACHINE in MOVING:
        with pytest.raises(OSError, match="Bad address"):
            call()
        assert memoryview(used)[0] == 7  # An access by the process itself migrates the memory.
    assert call() > 0
    os.close(file)


def test_copy_to_host_reads_what_the_device_wrote_last(used, tmp_path):
    """The workaround: a copy by the queue does not access the memory from the host."""
    file = tmp_path / "bytes"
    file.write_bytes(bytes(used.copy_to_host()))
    assert file.read_bytes() == bytes([7]) * (1 << 16)


def test_from_a_file_by_way_of_the_host(used, tmp_path):
    file = tmp_path / "bytes"
    file.write_bytes(bytes([9]) * (1 << 16))
    used.copy_from_host(file.read_bytes())
    assert used.tobytes() == bytes([9]) * (1 << 16)


FAULTS = """
    import faulthandler
    import os

    null = open(os.devnull, "w")
    if os.environ["WHEN"] == "before":
        faulthandler.enable(file=null)
    import zeusm.memory as zm

    memory = zm.MemoryUSMShared(4096)
    if os.environ["WHEN"] != "before":
        faulthandler.enable(file=null)
    for value in (7, 8):
        memory.memset_async(value).wait()
        print(bytes(memoryview(memory)[:2]))
"""
READ = f"{bytes([7, 7])}\n{bytes([8, 8])}\n"


def test_faulthandler_before_the_driver(program):
    assert program(FAULTS, WHEN="before") == READ


def test_faulthandler_after_the_driver(program):
    """It raises the signal again without the fault's address, which the driver's handler needs."""
    if MACHINE in MOVING:
        program(FAULTS, crashes=True, WHEN="after")
    else:
        assert program(FAULTS, WHEN="after") == READ


def test_an_export_is_refused_where_the_memory_migrates():
    memory = zeusm.memory.MemoryUSMShared(4096)
    memory.memset(1)
    if MACHINE in MOVING:
        with pytest.raises(zeusm.memory.IPCError, match="migrates"):
            memory.ipc_handle()
        return
    with zeusm.memory.IPCMemoryHandle.open(memory.ipc_handle()) as opened:
        memoryview(memory)[:] = bytes([2]) * 4096
        assert opened.tobytes() == bytes([2]) * 4096
