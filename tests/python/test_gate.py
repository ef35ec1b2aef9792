"""An export of an address waits for the operations in flight on the memory, so other packages find them complete."""

import gc
import os
import pickle
import signal
import threading
import time
import weakref

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from conftest import CLASSES, FACTORS, in_time

N = 1000
BEFORE, PENDING = 1, 7


@pytest.fixture(scope="module")
def turn(large):
    """The duration of one fill of the large memory, in seconds: the shortest of several, as other programs may delay one."""

    def seconds():
        started = time.monotonic()
        large.memset_async().wait()
        return time.monotonic() - started

    return min(seconds() for _ in range(6))


@pytest.fixture
def busy(large, turn):
    """Submits long fills to the default queue, and returns the event of the last one, which is in flight. There are more of
    them if other programs delay this one so long that the fills are complete.
    """

    def submit(turns=4, seconds=0):
        for factor in FACTORS:
            for value in range(factor * max(turns, int(seconds / turn))):
                end = large.memset_async(value % 256)
            if not end.is_complete:
                return end
        raise AssertionError("the fills are complete, however many they are")

    yield submit
    large.memset_async().wait()


def dlpack_of_dpnp(x):
    return pytest.importorskip("dpnp").from_dlpack(x)


def through_dpctl(memory):
    theirs = dpctl.memory.as_usm_memory(memory)
    return np.asarray(theirs.copy_to_host())


def interface(x):
    class Described:
        __array_interface__ = x.__array_interface__

    return np.asarray(Described())


def out_of_band(memory):
    buffers = []
    pickle.dumps(memory, 5, buffer_callback=buffers.append)
    return np.frombuffer(buffers[0], "u1")


def by_pointer(x):
    """Reads by the address, as a library in C."""
    return np.ctypeslib.as_array((np.ctypeslib.ctypes.c_ubyte * N).from_address(x._pointer))


HOSTS = {
    "memoryview": lambda m: np.asarray(memoryview(m)),
    "numpy": np.asarray,
    "bytes": lambda m: np.frombuffer(bytes(m), "u1"),
    "a slice": lambda m: np.asarray(m[0:]),
    "numpy of an array": lambda m: np.asarray(m.view("u1")),
    "__array__, a copy": lambda m: m.view("u1").__array__(copy=True),
    "__array_interface__": lambda m: interface(m.view("u1")),
    "memoryview of an array": lambda m: np.asarray(memoryview(m.view("u1")[:])),
    "part of an array": lambda m: np.asarray(m.view("u1", (10,), (100,), 0)),
    "an array imported again": lambda m: np.asarray(zeusm.from_dlpack(m.view("u1"))),
    "a dictionary imported again": lambda m: np.asarray(zeusm.as_usm_array(m)),
    "pickled out of band": out_of_band,
    "the address": by_pointer,
    "the array's address": lambda m: by_pointer(m.view("u1")),
}
if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # NumPy 2.1 added the keywords.
    HOSTS |= {
        "DLPack to the host": lambda m: np.from_dlpack(m.view("u1"), device="cpu"),
        "DLPack, a copy": lambda m: np.from_dlpack(m.view("u1"), device="cpu", copy=True),
    }
ANY = {
    "copy_to_host": lambda m: m.copy_to_host(),
    "copy_to_host of an array": lambda m: m.view("u1").copy_to_host(),
    "copy_to_host of rows": lambda m: m.view("u1", (10, 5), (100, 1), 0).copy_to_host(),
    "tobytes": lambda m: np.frombuffer(m.tobytes(), "u1"),
    "pickled": lambda m: pickle.loads(pickle.dumps(m, 2)).copy_to_host(),
    "pickled in band": lambda m: pickle.loads(pickle.dumps(m, 5)).copy_to_host(),
    "a copy": lambda m: CLASSES["host"](m, copy=True).copy_to_host(),
    "asarray": lambda m: zeusm.asarray(m, usm_type="host", copy=True).copy_to_host(),
    "copy_from_device": lambda m: copied(m),
    "dpctl": through_dpctl,
    "dpnp": lambda m: np.asarray(pytest.importorskip("dpnp").asarray(m.view("u1")).asnumpy()),
    "another process's handle": lambda m: opened(m),
}
if dpctl.__version__ >= "0.19":  # dpnp 0.15 imports DLPack tensors of dpctl's arrays only.
    ANY["dpnp by DLPack"] = lambda m: np.asarray(dlpack_of_dpnp(m.view("u1")).asnumpy())


def copied(memory):
    other = zm.MemoryUSMHost(N)
    other.copy_from_device(memory)
    return other.copy_to_host()


def opened(memory):
    with zm.IPCMemoryHandle.open(memory.ipc_handle()) as there:
        return there.copy_to_host()


@pytest.mark.parametrize("way", HOSTS)
def test_the_host_sees_what_was_pending(host_class, busy, way):
    def attempt(turns):
        m = host_class(N)
        m.memset(BEFORE)
        end = busy(turns)
        m.memset_async(PENDING)
        is_pending = not end.is_complete
        assert np.all(HOSTS[way](m) == PENDING)
        return is_pending

    in_time(attempt)


@pytest.mark.parametrize("way", ANY)
def test_any_way_out_comes_after_what_was_pending(memory_class, busy, way):
    m = memory_class(N)
    m.memset(BEFORE)
    busy()
    m.memset_async(PENDING)
    assert np.all(ANY[way](m) == PENDING)


def write_by_numpy(m):
    np.asarray(m)[:] = 9


def write_by_dpctl(m):
    dpctl.memory.as_usm_memory(m).copy_from_host(np.full(N, 9, "u1"))


WRITES = {
    "copy_from_host": lambda m: m.copy_from_host(np.full(N, 9, "u1")),
    "copy_from_host of an array": lambda m: m.view("u1").copy_from_host(np.full(N, 9, "u1")),
    "copy_from_host of rows": lambda m: m.view("u1", (N // 2, 2), (1, N // 2)).copy_from_host(
        np.full((N // 2, 2), 9, "u1")
    ),
    "memset": lambda m: m.memset(9),
    "dpctl": write_by_dpctl,
    "numpy": write_by_numpy,
}


@pytest.mark.parametrize("way", WRITES)
def test_what_is_written_is_not_overwritten_by_what_was_pending(memory_class, busy, way):
    if way == "numpy" and memory_class is CLASSES["device"]:
        memory_class = CLASSES["shared"]
    m = memory_class(N)
    busy()
    m.memset_async(PENDING)
    WRITES[way](m)
    assert m.tobytes() == b"\x09" * N


def test_a_host_buffer_in_usm_is_waited_for(host_class, busy):
    """The host destination of an asynchronous copy is itself memory of zeusm."""
    source, target = zm.MemoryUSMDevice(N), host_class(N)
    target.memset(BEFORE)
    source.memset(PENDING)
    view = np.asarray(target)
    busy()
    source.copy_to_host_async(view)
    assert np.all(target.view("u1").copy_to_host() == PENDING)
    assert bytes(memoryview(target)) == bytes([PENDING]) * N


def test_a_slice_a_view_and_an_import_share_what_is_pending(host_class, busy):
    m = host_class(N)
    m.memset(BEFORE)
    array, part = m.view("u1"), m[100:200]
    again = zm.as_usm_memory(array)
    busy()
    again.memset_async(PENDING)
    assert bytes(memoryview(part)) == bytes([PENDING]) * 100
    busy()
    part.memset_async(3)
    assert np.all(np.asarray(array)[100:200] == 3)


def test_what_is_not_touched_is_not_waited_for(host_class, busy):
    def attempt(turns):
        m = host_class(N)
        other = host_class(N)
        end = busy(turns)
        m[:500].memset_async(PENDING)
        memoryview(other)
        memoryview(m[500:])
        np.asarray(m.view("u1")[500:])
        return not end.is_complete

    in_time(attempt)


def test_what_runs_in_another_context_is_waited_for(busy, host_class):
    """The copy is submitted to the queue of its destination, which belongs to another context."""
    context = dpctl.SyclContext(dpctl.SyclDevice("level_zero:gpu"))
    far = zm.MemoryUSMDevice(N, queue=dpctl.SyclQueue(context, context.get_devices()[0]))
    source = host_class(N)
    source.memset(PENDING)
    busy()
    far.copy_from_device_async(source)
    source.view("u1").copy_from_host(np.full(N, 9, "u1"))
    assert far.tobytes() == bytes([PENDING]) * N


def test_after_an_export_zeusms_own_ways_out_are_still_in_order(host_class, busy):
    """zeusm orders its own operations and accesses after an export too; the users of the pointer order theirs."""
    m = host_class(N)
    theirs = dpctl.memory.as_usm_memory(m)
    busy()
    done = m.memset_async(PENDING)
    assert np.all(np.asarray(m) == PENDING)
    busy()
    done = m.memset_async(PENDING + 1)
    done.wait()
    assert theirs.tobytes() == bytes([PENDING + 1]) * N


# --- interrupts ------------------------------------------------------------------------------------


class Stop(Exception):
    """Raised by the signal handler of the tests."""


@pytest.fixture
def interrupt():
    """Sends a signal to this process after a delay."""

    def handler(*_):
        raise Stop

    usual = signal.signal(signal.SIGUSR1, handler)
    timers = []

    def soon(seconds=0.05):
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGUSR1))
        timers.append(timer)
        timer.start()
        return timer

    yield soon
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGUSR1, usual)


WAITS = {
    "memset": lambda m: m.memset(9),
    "memset of much": lambda m: zm.MemoryUSMDevice(1 << 20).memset(9),
    "copy_to_host": lambda m: m.copy_to_host(),
    "tobytes": lambda m: m.tobytes(),
    "copy_from_host": lambda m: m.copy_from_host(bytes(N)),
    "copy_from_device": lambda m: m.copy_from_device(CLASSES["host"](N)),
    "a copy": lambda m: CLASSES["host"](m, copy=True),
    "rows": lambda m: zeusm.asarray(m.view("u1", (10, 5), (100, 1), 0), copy=True),
    "the address": lambda m: m._pointer,
    "the dictionary": lambda m: m.__sycl_usm_array_interface__,
    "DLPack": lambda m: m.__dlpack__(),
    "DLPack, no synchronisation": lambda m: m.__dlpack__(stream=-1),
}


@pytest.mark.once
@pytest.mark.parametrize("way", WAITS)
def test_a_wait_is_interrupted(busy, interrupt, way):
    """The operations stay in flight, and their operands are retained until completion."""

    def attempt(turns):
        m = zm.MemoryUSMShared(N)
        m.memset(BEFORE)
        end = busy(turns, seconds=turns / 20)
        m.memset_async(PENDING)
        timer = interrupt()
        try:
            WAITS[way](m)
            timer.join()  # The signal comes after the wait, which was too short or cannot be interrupted.
            time.sleep(5)
        except Stop:
            was_in_time = not end.is_complete
        del m
        end.wait()
        return was_in_time

    in_time(attempt)


@pytest.mark.parametrize("way", [memoryview, np.asarray, lambda m: np.asarray(m.view("u1"))])
def test_a_buffer_comes_before_an_interrupt(busy, interrupt, way):
    """A buffer request defers the signal: NumPy ignores an error and makes an array of the object itself."""
    m = zm.MemoryUSMShared(N)
    end = busy(seconds=0.5)
    m.memset_async(PENDING)
    interrupt(0.02)
    seen = []

    def look():
        seen.append(way(m))
        time.sleep(5)

    with pytest.raises(Stop):
        look()
    assert end.is_complete
    assert all(np.asarray(view).dtype == np.uint8 for view in seen)


def test_what_an_interrupted_copy_writes_to_is_kept(busy, interrupt):
    class Array(np.ndarray):
        pass

    kept = []

    def attempt(turns):
        m, target = zm.MemoryUSMDevice(N), np.zeros(N, "u1").view(Array)
        m.memset(PENDING)
        end = busy(turns, seconds=turns / 20)
        kept[:] = m, target, end
        timer = interrupt()
        try:
            m.copy_to_host(target)
            timer.join()
            time.sleep(5)
        except Stop:
            was_interrupted = not end.is_complete
        try:
            m.close()
        except BufferError:
            return was_interrupted
        assert end.is_complete
        return False

    in_time(attempt)
    m, target, end = kept
    kept.clear()
    gone = weakref.ref(target)
    view = np.asarray(target)
    del target
    gc.collect()
    assert gone() is not None or end.is_complete
    end.wait()
    m.memset_async().wait()
    assert np.all(view == PENDING)
    deadline = time.monotonic() + 60
    del view
    while gone() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone() is None
    m.close()
