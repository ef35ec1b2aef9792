"""Submissions return without waiting for the device."""

import pytest
import zeusm.memory


@pytest.fixture(scope="module")
def large():
    """Memory large enough for a fill to stay in flight."""
    return zeusm.memory.MemoryUSMDevice(256 << 20)


# A driver that copies such sizes by the host waits for the operations before, in the append.
@pytest.mark.parametrize("size", [64, 1024, 1 << 20])
@pytest.mark.parametrize("direction", ["to", "from"])
def test_a_copy_behind_other_work_is_only_submitted(large, direction, size):
    memory, host = zeusm.memory.MemoryUSMDevice(size), bytearray(size)
    memory.memset(1)
    if direction == "to":
        expected = bytes([1]) * size
        copy = memory.copy_to_host_async
    else:
        host[:] = expected = bytes([2]) * size
        copy = memory.copy_from_host_async
    copy(host).wait()
    for value in range(8):
        before = large.memset_async(value)
    copied = copy(host)
    assert not before.is_complete
    copied.wait()
    assert before.is_complete
    assert host == expected == memory.tobytes()


def test_a_wait_that_begins_before_the_submission(large):
    """The driver may take an event for complete while another thread appends the operation that signals it."""
    for value in range(1, 31):
        memory, first = zeusm.memory.MemoryUSMShared(300), bytearray(300)
        memory.memset(value)
        for _ in "ab":
            large.memset_async(value)
        memory.copy_to_host_async(first)
        assert memory.copy_to_host(bytearray(300)) == bytes([value]) * 300
        assert first == bytes([value]) * 300
