"""Pools: statistics, limits, callbacks, scopes, and operations on pooled memory."""

import gc
import os
import threading

import dpctl.memory
import pytest
import zeusm.memory as zm
from conftest import CLASSES

pytestmark = pytest.mark.once

MIB = 1 << 20


@pytest.fixture
def pool(usm_type):
    """A pool of each kind."""
    return zm.MemoryPool(usm_type)


def test_memory_of_a_pool(pool, usm_type):
    memory = pool.malloc(1000, alignment=4096)
    assert type(memory) is CLASSES[usm_type]
    assert memory.nbytes == 1000
    assert memory._pointer % 4096 == 0
    memory.copy_from_host(bytes(range(250)) * 4)
    assert memory.tobytes() == bytes(range(250)) * 4
    assert pool.used_bytes() >= 1000
    assert pool.statistics().requested_bytes == 1000
    del memory
    assert pool.used_bytes() == 0
    assert pool.free_bytes() == pool.total_bytes() > 0


def test_the_keyword(pool, usm_type, memory_class):
    assert pool.usm_type == usm_type
    memory = memory_class(100, pool=pool)
    assert pool.statistics().used_count == 1
    copy = memory_class(memory, copy=True, pool=pool)
    assert pool.statistics().used_count == 2
    assert copy.nbytes == 100
    direct = memory_class(100, pool=False)
    usual = memory_class(100, pool=True)
    assert pool.statistics().used_count == 2
    assert direct.nbytes == usual.nbytes == 100


def test_what_the_keyword_refuses(memory_class, usm_type):
    other = "host" if usm_type != "host" else "shared"
    with pytest.raises(ValueError, match=f"USM-{other}.*USM-{usm_type}"):
        memory_class(100, pool=zm.MemoryPool(other))
    with pytest.raises(TypeError, match="pool must be a MemoryPool or a bool, not str"):
        memory_class(100, pool="mine")
    memory = memory_class(100)
    with pytest.raises(ValueError, match="no use without an allocation"):
        memory_class(memory, pool=zm.MemoryPool(usm_type))


def test_a_block_is_used_again(pool):
    first = pool.malloc(5000)
    pointer = first._pointer
    del first
    assert pool.malloc(5000)._pointer == pointer
    statistics = pool.statistics()
    assert (statistics.allocations, statistics.misses, statistics.hits) == (2, 1, 1)


def test_figures(pool):
    kept = pool.malloc(2 * MIB)
    pool.malloc(4 * MIB)
    assert pool.statistics().peak_bytes == 6 * MIB
    pool.reset_peak()
    assert pool.statistics().peak_bytes == 2 * MIB
    assert pool.statistics() == pool.statistics()
    text = repr(pool.statistics())
    assert f"used_bytes={2 * MIB}" in text
    assert "limit=None" in text
    assert str(2 * MIB) in repr(pool)
    assert pool.trim(3 * MIB) == 4 * MIB
    assert pool.total_bytes() == 2 * MIB
    del kept
    assert pool.free_all_blocks() == 2 * MIB
    assert pool.total_bytes() == 0


def test_scopes(pool):
    before = pool.malloc(2 * MIB)
    scope = pool.scope()
    with pytest.raises(RuntimeError, match="not entered"):
        scope.report()
    with scope as entered:
        assert entered is scope
        memory = pool.malloc(4 * MIB)
        assert scope.report().used_bytes == 4 * MIB
        del memory, before
    pool.malloc(8 * MIB)
    report = scope.report()
    assert (report.allocations, report.used_bytes, report.used_count) == (1, -2 * MIB, -1)
    assert report.peak_bytes == 4 * MIB
    with pytest.raises(RuntimeError, match="once"), scope:
        pass


def test_a_limit(pool):
    pool.set_limit(4 * MIB)
    assert pool.get_limit() == 4 * MIB
    memory = pool.malloc(3 * MIB)
    with pytest.raises(zm.USMAllocationError) as failure:
        pool.malloc(2 * MIB)
    for part in (2 * MIB, 3 * MIB, 4 * MIB):
        assert str(part) in str(failure.value)
    assert pool.statistics().failures == 1
    # A limit below the bytes in use: allocations fail until enough is freed.
    pool.set_limit(MIB)
    with pytest.raises(zm.USMAllocationError):
        pool.malloc(64)
    del memory
    pool.malloc(64)
    pool.set_limit()
    assert pool.get_limit() is None
    pool.malloc(8 * MIB)


@pytest.mark.parametrize("name", ["limit", "largest_cache", "first_slab", "largest_slab"])
def test_options_are_checked(name):
    with pytest.raises(ValueError, match=f"{name} must be .*-1"):
        zm.MemoryPool("host", **{name: -1})
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        zm.MemoryPool("host", **{name: "much"})
    assert zm.MemoryPool("host", **{name: 1 << 22}).malloc(100).nbytes == 100


def test_growth_is_as_told(usm_type):
    for first_slab in (64 << 10, MIB):
        pool = zm.MemoryPool(usm_type, first_slab=first_slab, largest_slab=MIB)
        memory = pool.malloc(64)
        assert pool.total_bytes() == first_slab
        del memory
    cautious = zm.MemoryPool(usm_type, largest_cache=0)
    cautious.malloc(2 * MIB)
    assert cautious.total_bytes() == 0


def test_arguments_are_checked(pool):
    with pytest.raises(ValueError, match="nothing"):
        zm.MemoryPool("nothing")
    with pytest.raises(ValueError, match="nothing"):
        zm.get_pool("nothing")
    with pytest.raises(ValueError, match="negative"):
        pool.malloc(-1)
    with pytest.raises(ValueError, match="alignment"):
        pool.malloc(10, alignment=3)
    with pytest.raises(ValueError, match="keep"):
        pool.trim(-1)
    with pytest.raises(ValueError, match="size"):
        pool.set_limit(-1)
    with pytest.raises(TypeError, match="callback must be callable"):
        pool.set_failure_callback(1)
    assert pool.malloc(0)._pointer == 0
    assert pool.statistics().allocations == 0


def test_a_callback_makes_room(pool):
    pool.set_limit(4 * MIB)
    hoard = [pool.malloc(4 * MIB)]
    asked = []

    def free_some(nbytes):
        asked.append(nbytes)
        return hoard.pop() is not None

    pool.set_failure_callback(free_some)
    memory = pool.malloc(3 * MIB)
    assert memory.nbytes == 3 * MIB
    assert asked == [3 * MIB]
    del memory
    hoard.extend(pool.malloc(MIB) for _ in range(4))
    pool.malloc(3 * MIB)  # One block after the other is freed.
    assert asked == [3 * MIB] * 4
    pool.set_failure_callback(None)
    with pytest.raises(zm.USMAllocationError):
        pool.malloc(4 * MIB)  # One block is left.
    assert asked == [3 * MIB] * 4


def test_a_callback_that_raises(pool):
    pool.set_limit(2 * MIB)
    kept = pool.malloc(MIB)

    def refuse(nbytes):
        raise KeyError(nbytes)

    pool.set_failure_callback(refuse)
    with pytest.raises(zm.USMAllocationError, match="callback failed") as failure:
        pool.malloc(2 * MIB)
    assert isinstance(failure.value.__cause__, KeyError)
    pool.set_failure_callback(None)
    del kept
    pool.malloc(2 * MIB)


def test_a_callback_that_allocates(pool):
    pool.set_limit(4 * MIB)
    kept = pool.malloc(3 * MIB)
    calls = []

    def greedy(nbytes):
        calls.append(pool.malloc(64))
        with pytest.raises(zm.USMAllocationError):
            pool.malloc(4 * MIB)
        return len(calls) < 3

    pool.set_failure_callback(greedy)
    with pytest.raises(zm.USMAllocationError):
        pool.malloc(2 * MIB)
    assert len(calls) == 3
    pool.set_failure_callback(None)
    del kept


def test_no_callback_for_more_than_the_limit(pool):
    pool.set_limit(MIB)
    asked = []
    pool.set_failure_callback(asked.append)
    with pytest.raises(zm.USMAllocationError):
        pool.malloc(2 * MIB)
    assert asked == []
    pool.set_failure_callback(None)


def test_a_lie_does_not_reach_the_neighbour(pool):
    memory, neighbour = pool.malloc(100), pool.malloc(100)

    class Liar:
        def __init__(self, size, offset=0):
            pointer, flag = memory.__sycl_usm_array_interface__["data"]
            self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | {
                "data": (pointer + offset, flag),
                "shape": (size,),
            }

    assert zm.as_usm_memory(Liar(100)).nbytes == 100
    for lie in (Liar(101), Liar(256), Liar(10, offset=95), Liar(1, offset=-1)):
        with pytest.raises(ValueError, match="but the allocation is|not a USM allocation"):
            zm.as_usm_memory(lie)
    del neighbour


def test_freed_on_another_thread(pool):
    blocks = [pool.malloc(n * 100 + 1) for n in range(100)]
    thread = threading.Thread(target=blocks.clear)
    thread.start()
    thread.join()
    assert pool.used_bytes() == 0
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


def test_threads_at_once(pool):
    def work():
        for n in range(500):
            memory = pool.malloc(n * 37 % 5000 + 1)
            assert memory.nbytes == n * 37 % 5000 + 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statistics = pool.statistics()
    assert (statistics.used_count, statistics.allocations) == (0, 4000)
    assert statistics.hits + statistics.misses == 4000


def test_memory_outlives_its_pool(usm_type):
    pool = zm.MemoryPool(usm_type)
    memory = pool.malloc(1000)
    memory.memset(7)
    del pool
    gc.collect()
    assert memory.tobytes() == b"\7" * 1000


def test_the_pool_behind_ordinary_allocations(fresh):
    code = """
        import sys
        import zeusm.memory as zm
        pool = zm.get_pool("shared")
        memory = zm.MemoryUSMShared(1000)
        other = zm.MemoryUSMDevice(1000)
        direct = zm.MemoryUSMShared(1000, pool=False)
        assert zm.get_pool("shared").statistics() == pool.statistics()
        print(pool.statistics().used_count)
    """
    assert fresh(code, env={"ZEUSM_POOL": "1"}).stdout.strip() == "1"
    for off in ("0", "off", "False"):
        assert fresh(code, env={"ZEUSM_POOL": off}).stdout.strip() == "0"


def test_after_a_fork(fresh):
    code = """
        import os
        import zeusm.memory as zm
        pool = zm.MemoryPool("shared")
        memory = pool.malloc(1000)
        memory.memset(3)
        before = pool.statistics()
        child = os.fork()
        if child == 0:
            assert bytes(memoryview(memory)) == bytes([3]) * 1000
            del memory
            other = pool.malloc(100)
            memoryview(other)[0] = 1
            del other
            # The child's pool holds only memory that the child allocated.
            assert pool.used_bytes() == 0 < pool.total_bytes()
            assert pool.free_all_blocks() > 0 == pool.total_bytes()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert pool.statistics() == before
        assert bytes(memoryview(memory)) == bytes([3]) * 1000
    """
    assert hasattr(os, "fork")
    fresh(code)


def test_dpctl_takes_pooled_memory(pool, usm_type):
    memory = pool.malloc(100)
    memory.copy_from_host(bytes(range(100)))
    theirs = dpctl.memory.as_usm_memory(memory)
    assert theirs._pointer == memory._pointer
    assert theirs.get_usm_type() == usm_type
    assert theirs.tobytes() == bytes(range(100))
    assert zm.as_usm_memory(theirs)._pointer == memory._pointer
