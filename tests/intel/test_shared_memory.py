"""Shared memory on devices whose driver moves it as a whole from host to device and back."""

import zeusm.memory


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


def test_copy_to_host_reads_what_the_device_wrote_last(tmp_path):
    # A system call on such memory fails with EFAULT on a discrete device, since the kernel does not serve the fault by
    # which the driver would move it; a copy does not meet the fault.
    memory = zeusm.memory.MemoryUSMShared(1 << 16)
    memory.memset(7)
    file = tmp_path / "bytes"
    file.write_bytes(bytes(memory.copy_to_host()))
    assert file.read_bytes() == bytes([7]) * (1 << 16)
