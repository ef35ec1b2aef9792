"""`pool.suspend` and `pool.resume`: a pool gives its physical memory back and keeps its addresses."""

import ctypes
import functools
import gc
import os
import threading
import time

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from memory_of_process import resident
from test_faults import environment  # noqa: F401

pytestmark = pytest.mark.once

SIZES = (1, 100, 5000, 300_000, 1 << 20, 40 << 20)
SUSPENDED = "suspended"

resident_tells = pytest.mark.skipif(
    zeusm.runtime().kind != "cpu", reason="a device's memory is not the process's"
)


@pytest.fixture
def pool():
    return zm.MemoryPool("device", suspendable=True)


def filled(pool, sizes=SIZES):
    blocks = [pool.malloc(size) for size in sizes]
    for number, block in enumerate(blocks):
        block.memset(number + 1)
    return blocks


def holds(blocks):
    return all(
        block.tobytes() == bytes([number + 1]) * block.nbytes for number, block in enumerate(blocks)
    )


def test_the_contents_are_kept(pool):
    blocks = filled(pool)
    view = blocks[-1].view(np.int32)
    pointers = [block._pointer for block in blocks]
    for _ in range(3):
        assert sum(SIZES) <= pool.suspend() <= pool.total_bytes() + (1 << 20)
        assert pool.suspended
        pool.resume()
        assert not pool.suspended
    assert [block._pointer for block in blocks] == pointers
    assert holds(blocks)
    assert (view.copy_to_host() == 0x06060606).all()
    assert pool.malloc(100).nbytes == 100


@resident_tells
def test_the_memory_is_given_back():
    sizes = [64 << 20] * 4
    pool = zm.MemoryPool("device", suspendable=True)
    before = resident()
    blocks = filled(pool, sizes)
    taken = resident() - before
    assert taken >= sum(sizes) * 0.95
    pool.suspend(keep=False)
    assert resident() - before <= sum(sizes) * 0.05
    pool.resume()
    for number, block in enumerate(blocks):
        block.memset(number + 1)
    assert holds(blocks)


def test_the_limit_of_the_device_counts_what_is_held(fresh):
    fresh("""
import zeusm
import zeusm.memory as zm

pool = zm.MemoryPool("device", suspendable=True)
block = pool.malloc(32 << 20)
pool.suspend(keep=False)
zm.set_memory_limit(None, 48 << 20)
other = zm.MemoryUSMDevice(40 << 20, pool=False)
try:
    pool.resume()
except zeusm.LevelZeroError as error:
    assert "set_memory_limit" in str(error), error
else:
    raise AssertionError("40 and 32 MiB are more than 48")
assert pool.suspended
del other
pool.resume()
block.memset(1)
assert block.tobytes() == bytes([1]) * block.nbytes
""")


def test_what_is_refused_meanwhile(pool):
    blocks = filled(pool)
    block, array = blocks[3], blocks[3].view(np.uint8)
    other = zm.MemoryUSMDevice(block.nbytes)
    pool.suspend()
    for use in (
        lambda: block.memset(1),
        lambda: block.memset_async(1),
        lambda: block.tobytes(),
        lambda: block.copy_from_host(bytes(8)),
        lambda: other.copy_from_device(block),
        lambda: block.copy_from_device(other),
        lambda: block.__sycl_usm_array_interface__,
        lambda: block.__dlpack__(),
        lambda: array.__dlpack__(),
        lambda: array.copy_to_host(),
        lambda: array[1:5].copy_to_host(),
    ):
        with pytest.raises(zeusm.LevelZeroError, match=SUSPENDED):
            use()
    for size in 1, 100, 1 << 20, 1 << 25:
        with pytest.raises(zm.USMAllocationError, match=SUSPENDED):
            pool.malloc(size)
    assert pool.suspend() == 0
    del use
    block = array = None
    del blocks[3], blocks[-1]
    gc.collect()
    pool.trim()
    pool.resume()
    pool.resume()
    assert other.nbytes == 300_000
    assert all(
        kept.tobytes()[:1] == bytes([value])
        for kept, value in zip(blocks, (1, 2, 3, 5), strict=True)
    )


def test_other_pools_and_processes():
    with pytest.raises(ValueError, match="suspendable=True"):
        zm.MemoryPool("device").suspend()
    with pytest.raises(ValueError, match="suspendable=True"):
        zm.get_pool("device").resume()
    for kind in "host", "shared":
        with pytest.raises(ValueError, match=kind):
            zm.MemoryPool(kind, suspendable=True)
    with pytest.raises(ValueError, match="can be suspended"):
        zm.MemoryPool("device", suspendable=True).malloc(64).ipc_handle()


def test_operations_in_flight_come_first(pool):
    block = pool.malloc(64 << 20)
    for value in range(1, 6):
        last = block.memset_async(value)
    pool.suspend()
    assert last.is_complete
    pool.resume()
    assert block.tobytes() == b"\5" * block.nbytes


def test_alignment(pool):
    for power in range(22):
        assert pool.malloc(100, alignment=1 << power)._pointer % (1 << power) == 0


class CApi:
    """The functions of the C API that allocate from a pool and free, called without the GIL."""

    def __init__(self, pool):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.argtypes, get.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
        table = get(zeusm._zeusm._C_API, b"zeusm._C_API")
        # Behind two numbers in the place of one pointer: check, describe, from_pointer, pool, allocate, free.
        of_pool, allocate, free = (ctypes.c_void_p * 7).from_address(table)[4:]
        self.pool = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(of_pool)(pool)
        size = ctypes.c_size_t
        self.allocate_in = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, size, size)(allocate)
        self.free = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(free)

    def allocate(self, size):
        return self.allocate_in(self.pool, size, 0)


def test_a_block_that_is_freed_meanwhile_is_not_allocated(pool):
    """Not by C code either, which has no other way to know."""
    c, blocks = CApi(pool), [pool.malloc(1000) for _ in range(4)]
    pool.suspend()
    assert repr(pool).endswith(" held, suspended>")
    del blocks[:3]
    gc.collect()
    assert c.allocate(1000) is None
    with pytest.raises(zm.USMAllocationError, match=SUSPENDED):
        pool.malloc(1000)
    pool.resume()
    pointer = c.allocate(1000)
    assert pointer
    assert c.free(pointer) == 0


def test_threads_allocate_beside_it(pool):
    """100 rounds, in each of which threads are refused; other pools are used, suspended and resumed meanwhile."""
    refused, stop, wrong = threading.Semaphore(0), threading.Event(), []
    c, sleeping = CApi(pool), zm.MemoryPool("device", suspendable=True)
    others = [sleeping, zm.MemoryPool("device"), zm.MemoryPool("shared")]

    def in_python():
        try:
            kept = [pool.malloc(size) for size in (100, 100_000, 1 << 20)]
            del kept[0], kept
        except zm.USMAllocationError as error:
            if SUSPENDED not in str(error):
                raise
            return True

    def in_c():
        pointers = [c.allocate(size) for size in (100, 100_000, 1 << 20)]
        assert not any(c.free(pointer) for pointer in pointers)
        return not all(pointers)

    def in_another(other):
        used = filled(other, SIZES[:-1])
        if other is sleeping:
            other.suspend()
            other.resume()
        assert holds(used)

    def repeat(work):
        try:
            while not stop.is_set():
                if work():
                    refused.release()
                    time.sleep(0.001)
        except BaseException as error:
            wrong.append(error)
            raise

    blocks = filled(pool, SIZES[:-1])
    works = [in_python, in_c] * 2 + [functools.partial(in_another, other) for other in others]
    threads = [threading.Thread(target=repeat, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            pool.suspend()
            while refused.acquire(blocking=False):
                pass
            while not refused.acquire(timeout=1):
                assert not wrong
            pool.resume()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert holds(blocks)
    assert pool.statistics().used_count == len(blocks)


@resident_tells
def test_a_pool_that_ends_while_suspended():
    pool = zm.MemoryPool("device", suspendable=True)
    before = resident()
    blocks = filled(pool, [64 << 20])
    pool.suspend()
    del blocks, pool
    gc.collect()
    assert resident() - before < 8 << 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
@pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="the driver does not work in a child")
def test_a_forks_child_has_a_pool_of_its_own(pool):
    block = filled(pool, [1000])[0]
    pool.suspend()
    child = os.fork()
    if not child:
        try:
            block.tobytes()
        except zeusm.LevelZeroError:
            pool.resume()
            os._exit(int(filled(pool, [10])[0].tobytes() != b"\1" * 10))
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    pool.resume()
    assert block.tobytes() == b"\1" * 1000


def test_pointers_of_peers_stay_valid(pool):
    dpctl_memory = pytest.importorskip("dpctl.memory")
    dpnp = pytest.importorskip("dpnp")
    block = pool.malloc(1 << 20)
    theirs = dpctl_memory.as_usm_memory(block)
    assert theirs.get_usm_type() == "device"
    numbers = dpnp.from_dlpack(block.view(np.int32))
    numbers[:] = 5
    for _ in range(3):
        pool.suspend()
        pool.resume()
        numbers += 1
    assert (dpnp.asnumpy(numbers) == 8).all()
    assert theirs._pointer == block._pointer


FAULTS = """
    import faulthandler, random, zeusm.memory as zm
    from faults import Driver

    faulthandler.dump_traceback_later(240, exit=True)
    driver, fired, random = Driver(), set(), random.Random(1)
    CODES = [0x70000003, 0x70000002, 0x78000004, 0x78000003]
    pool = zm.MemoryPool("device", suspendable=True)
    others = [zm.MemoryPool("device", suspendable=True), zm.MemoryPool("device"), zm.MemoryPool("host")]
    sizes = [100, 5000, 300_000, 1 << 20]
    blocks = [pool.malloc(size) for size in sizes]
    beside = [other.malloc(5000) for other in others]
    for block in beside:
        block.memset(99)

    def until_done(call, nth):
        for attempt in range(20):
            driver.arm(nth if attempt < 2 else 0, random.choice(CODES))
            try:
                call()
                return
            except (RuntimeError, MemoryError):
                fired.add(driver.fired())
            finally:
                fired.add(driver.fired())
                driver.arm()

    for number in range(100):
        for value, block in enumerate(blocks):
            block.memset((number + value) % 256)
        until_done(lambda: pool.suspend(keep=number % 4 > 0), 1 + number % 25)
        if number % 7 == 0:
            others[0].suspend()
        more = [other.malloc(size) for other in others[1:] for size in sizes]
        # If it has failed after the contents were put back, the pool is in use again.
        until_done(pool.resume, 1 + number // 2 % 25)
        assert not pool.suspended
        others[0].resume()
        for value, block in enumerate(blocks if number % 4 else []):
            assert block.tobytes() == bytes([(number + value) % 256]) * block.nbytes, number
        if number % 3 == 0:
            blocks[number % 4] = pool.malloc(sizes[number % 4])
    assert all(block.tobytes() == bytes([99]) * 5000 for block in beside)
    expected = {"zeVirtualMemMap", "zeVirtualMemUnmap", "zePhysicalMemCreate", "zePhysicalMemDestroy", "zeMemAllocHost"}
    assert expected <= fired, fired
"""


@pytest.mark.skipif(
    zeusm.runtime().kind != "cpu", reason="the driver in front is the CPU runtime's"
)
def test_nothing_is_lost_by_calls_that_fail(fresh, environment):  # noqa: F811
    fresh(FAULTS, env=environment)
