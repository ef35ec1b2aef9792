"""`MemoryUSMHost.from_host`: memory of other objects as host memory, where it is."""

import array
import gc
import mmap
import multiprocessing
import os
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="not every driver has the extension"),
]
PAGE = mmap.PAGESIZE


@pytest.fixture
def segment():
    made = shared_memory.SharedMemory(create=True, size=3 * PAGE)
    yield made
    gc.collect()
    made.close()
    made.unlink()


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros(1 << 20, np.float32),
        lambda: np.zeros(1 << 20, np.float32)[1000:2001],
        lambda: np.zeros((3, 5, 7), np.int16),
        lambda: mmap.mmap(-1, 3 * PAGE),
        lambda: array.array("d", bytes(8000)),
        lambda: bytearray(10_000),
        lambda: bytearray(1),
    ],
    ids=["numpy", "part", "three", "mmap", "array", "bytearray", "byte"],
)
def test_writes_are_seen_on_both_sides(make):
    buffer = make()
    memory = zm.MemoryUSMHost.from_host(buffer)
    view = memoryview(buffer).cast("B")
    assert (memory.nbytes, memory.get_usm_type()) == (view.nbytes, "host")
    memory.memset(65)
    assert bytes(view) == b"A" * view.nbytes
    view[-1] = 66
    assert memory.tobytes()[-1] == 66
    device = zm.MemoryUSMDevice(memory.nbytes)
    device.copy_from_device(memory)
    device.memset(67)
    memory.copy_from_device(device)
    assert bytes(view) == b"C" * view.nbytes


def test_shared_memory_of_another_process(segment):
    memory = zm.MemoryUSMHost.from_host(segment.buf)
    memory.memset(1)
    child = multiprocessing.get_context("spawn").Process(target=_increase, args=(segment.name,))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert memory.tobytes() == b"\2" * memory.nbytes


def _increase(name):
    attached = shared_memory.SharedMemory(name=name)
    bytes_of_it = np.frombuffer(attached.buf, np.uint8)
    bytes_of_it += 1
    del bytes_of_it
    attached.close()


def test_the_exporter_is_locked_until_the_end():
    data = bytearray(100)
    memory = zm.MemoryUSMHost.from_host(data)
    part = memory[10:20]
    with pytest.raises(BufferError):
        data.append(1)
    del memory
    with pytest.raises(BufferError):
        data.append(1)
    part.memset(1)
    del part
    data.append(1)
    assert data == bytes(10) + b"\1" * 10 + bytes(80) + b"\1"
    with zm.MemoryUSMHost.from_host(data), pytest.raises(BufferError):
        data.clear()
    data.clear()


def test_the_exporter_lives_as_long_as_the_memory():
    values = np.ones(1 << 16)
    known = weakref.ref(values)
    memory = zm.MemoryUSMHost.from_host(values)
    shown = memoryview(memory)
    del values, memory
    gc.collect()
    assert known() is not None
    assert bytes(shown[-8:]) == np.float64(1).tobytes()
    del shown
    gc.collect()
    assert known() is None


def test_neighbours_stay_the_programs():
    whole = np.frombuffer(mmap.mmap(-1, 8 * PAGE), np.uint8)
    memory = zm.MemoryUSMHost.from_host(whole[5000:5100])
    device = zm.MemoryUSMDevice(3 * PAGE)
    # It begins in a page that is in use in place, and ends beyond it.
    beside = whole[5100 : 5100 + 3 * PAGE]
    beside[:] = 7
    device.copy_from_host(beside)
    device.copy_to_host(whole[4000 : 4000 + 3 * PAGE])
    assert memory.tobytes() == b"\7" * 100
    with pytest.raises(zm.USMAllocationError, match=r"in use in place.*copy_from_host"):
        zm.MemoryUSMHost.from_host(whole[5200:5300])
    del memory
    assert zm.MemoryUSMHost.from_host(whole).nbytes == 8 * PAGE


def test_what_is_refused():
    fixed = np.zeros(10)
    fixed.flags.writeable = False
    for wrong, error, message in [
        (b"abc", BufferError, "writable"),
        (fixed, ValueError, "read-only"),
        (np.zeros((4, 4))[:, ::2], ValueError, "contiguous"),
        (np.array([object()]), ValueError, "references"),
        (3, TypeError, "buffer protocol"),
        (zm.MemoryUSMDevice(8), TypeError, "USM already"),
        (zm.MemoryUSMHost(8), zm.USMAllocationError, "USM already"),
    ]:
        with pytest.raises(error, match=message):
            zm.MemoryUSMHost.from_host(wrong)
    with (
        open(__file__, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        pytest.raises(BufferError, match="writable"),
    ):
        zm.MemoryUSMHost.from_host(mapped)
    assert zm.MemoryUSMHost.from_host(bytearray()).nbytes == 0


def test_other_ways_out():
    values = np.arange(1000, dtype=np.int32)
    memory = zm.MemoryUSMHost.from_host(values)
    assert pickle.loads(pickle.dumps(memory)).tobytes() == values.tobytes()
    assert np.shares_memory(np.asarray(memory.view(np.int32)), values)
    assert memory.__sycl_usm_array_interface__["data"][0] == values.ctypes.data
    with pytest.raises(ValueError, match="the program's"):
        memory.ipc_handle()


def test_peers_use_it():
    dpctl_memory = pytest.importorskip("dpctl.memory")
    dpnp = pytest.importorskip("dpnp")
    values = np.arange(1 << 18, dtype=np.int32)
    memory = zm.MemoryUSMHost.from_host(values)
    theirs = dpctl_memory.as_usm_memory(memory)
    assert (theirs.get_usm_type(), theirs._pointer) == ("host", values.ctypes.data)
    theirs_too = dpnp.from_dlpack(memory.view(np.int32))
    theirs_too += 1
    theirs_too.sycl_queue.wait()
    assert (values == np.arange(1, (1 << 18) + 1)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_a_forks_child_has_its_own_pages():
    values = np.zeros(10_000, np.uint8)
    memory = zm.MemoryUSMHost.from_host(values)
    child = os.fork()
    if not child:
        memory.memset(3)
        values[0] += 1
        os._exit(int(memory.tobytes()[:2] != b"\4\3"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not values.any()
    memory.memset(1)
    assert values.all()


def test_other_arrays_in_its_pages_are_the_programs():
    """The pages are USM only as long as the object is alive."""
    numbers = np.arange(4 * PAGE, dtype="u1")
    memory = zm.MemoryUSMHost.from_host(numbers[: PAGE + 1])
    for other in numbers, numbers[1:10], numbers[PAGE + 1 :]:
        with pytest.raises(BufferError, match="not USM"):
            zeusm.from_dlpack(other, copy=False)
        assert (zeusm.from_dlpack(other).copy_to_host() == other).all()
    assert zeusm.from_dlpack(memory)._pointer == memory._pointer


def test_one_thread_gets_a_page(segment):
    begin = threading.Barrier(4)

    def take(_):
        begin.wait(60)
        try:
            return zm.MemoryUSMHost.from_host(segment.buf[: 2 * PAGE])
        except zm.USMAllocationError:
            return None

    with ThreadPoolExecutor(4) as threads:
        for _ in range(300):
            assert len([taken for taken in threads.map(take, range(4)) if taken]) == 1
