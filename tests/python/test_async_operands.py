"""The operands of asynchronous operations: how they are retained, and which calls wait for the operations."""

import gc
import itertools
import threading
import time
import weakref

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory
from conftest import CLASSES, in_time

N = 1 << 16
PATTERN = bytes(i % 251 for i in range(N))


def soon(holds):
    """Whether a condition becomes true within a minute, without a call to zeusm."""
    end = time.monotonic() + 60
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)
        gc.collect()
    return holds()


def resizable(buffer):
    """Whether a bytearray can be resized."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True


def closes(memory):
    """Closes memory, unless operations in flight use it. Returns whether it is closed."""
    try:
        memory.close()
    except BufferError as error:
        if "operations" not in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize("into_memory", [True, False], ids=["source", "destination"])
def test_a_host_buffer_cannot_be_resized_meanwhile(memory_class, busy, into_memory):
    x = memory_class(N)

    def attempt(turns):
        buffer = bytearray(PATTERN)
        busy(turns)
        event = x.copy_from_host_async(buffer) if into_memory else x.copy_to_host_async(buffer)
        could_be_resized = resizable(buffer)
        is_pending = not event.is_complete
        assert not (is_pending and could_be_resized)
        event.wait()
        assert resizable(buffer)
        return is_pending

    in_time(attempt)


def test_waiting_for_the_last_releases_all_buffers(busy):
    x = zeusm.memory.MemoryUSMShared(N)
    buffers = [bytearray(N) for _ in range(10)]
    busy()
    events = [x.copy_to_host_async(buffer) for buffer in buffers]
    events[-1].wait()
    assert all(resizable(buffer) for buffer in buffers)


def test_operands_are_reclaimed_without_a_call(busy):
    def attempt(turns):
        x = zeusm.memory.MemoryUSMDevice(N)
        buffer = bytearray(N)
        watched = weakref.ref(x)
        before = busy(turns)
        x.copy_to_host_async(buffer)
        del x
        is_retained = watched() is not None and not resizable(buffer)
        is_pending = not before.is_complete
        assert is_retained or not is_pending
        assert soon(lambda: watched() is None and resizable(buffer))
        return is_pending

    in_time(attempt)


def test_a_finalizer_that_takes_long_delays_no_other_operands(busy):
    """The thread that reclaims operands waited for a finalizer in another thread."""

    def attempt(turns):
        x = zeusm.memory.MemoryUSMDevice(N)
        dropping, end, waiter = threading.Event(), threading.Event(), None

        class Slow(bytearray):
            def __del__(self):
                if threading.current_thread() is waiter:
                    dropping.set()
                    end.wait(30)

        busy(turns)
        waiter = threading.Thread(target=x.copy_from_host_async(Slow(N)).wait)
        waiter.start()
        while waiter.is_alive() and not dropping.wait(0.01):
            pass
        try:
            before = busy(turns)
            buffer = bytearray(N)
            x.copy_to_host_async(buffer)
            is_pending = dropping.is_set() and not before.is_complete
            assert soon(lambda: resizable(buffer))
            return is_pending
        finally:
            end.set()
            waiter.join()

    in_time(attempt)


def test_operands_of_a_dropped_event_are_unchanged(busy):
    class Watched(np.ndarray):
        """An array that supports weak references."""

    def attempt(turns):
        source = np.frombuffer(PATTERN, "u1").copy().view(Watched)
        x, y = zeusm.memory.MemoryUSMDevice(N), zeusm.memory.MemoryUSMShared(N)
        watched = [weakref.ref(source), weakref.ref(x)]
        before = busy(turns)
        x.copy_from_host_async(source)
        y.copy_from_device_async(x)
        del source, x
        # New allocations must not reuse the operands, which are in flight.
        others = [zeusm.memory.MemoryUSMDevice(N) for _ in range(8)]
        arrays = [np.full(N, 9, "u1") for _ in range(8)]
        is_retained = all(reference() is not None for reference in watched)
        is_pending = not before.is_complete
        assert is_retained or not is_pending
        assert bytes(y) == PATTERN
        assert soon(lambda: all(reference() is None for reference in watched))
        del others, arrays
        return is_pending

    in_time(attempt)


def test_a_pools_block_is_not_reused_meanwhile(busy, usm_type):
    def attempt(turns):
        pool = zeusm.memory.MemoryPool(usm_type)
        memory = pool.malloc(N)
        pointer = memory._pointer
        busy(turns)
        event = memory.memset_async(1)
        del memory
        others = [pool.malloc(N) for _ in range(8)]
        is_kept = pointer not in {other._pointer for other in others}
        is_kept = is_kept and pool.statistics().used_count == 1 + len(others)
        is_pending = not event.is_complete
        assert is_kept or not is_pending
        del event
        assert soon(lambda: pool.statistics().used_count == len(others))
        return is_pending

    in_time(attempt)


def test_a_source_of_another_package_is_retained(busy):
    theirs = dpctl.memory.MemoryUSMShared(N)
    theirs.copy_from_host(PATTERN)
    x = zeusm.memory.MemoryUSMShared(N)
    busy()
    x.copy_from_device_async(theirs)
    del theirs
    others = [dpctl.memory.MemoryUSMShared(N) for _ in range(8)]
    for other in others:
        memoryview(other)[:] = bytes(N)
    assert bytes(x) == PATTERN


def test_memory_is_not_closed_under_an_operation(memory_class, busy):
    def attempt(turns):
        x = memory_class(N)
        before = busy(turns)
        event = x.memset_async(1)
        is_refused = not closes(x)
        is_pending = not before.is_complete
        assert is_refused or not is_pending
        event.wait()
        x.close()
        with pytest.raises(ValueError, match="closed"):
            x.memset_async(1)
        return is_pending

    in_time(attempt)


def test_memory_is_closed_after_a_call_that_has_waited(memory_class):
    """The operation is complete then, and its operands may still be retained."""
    for _ in range(100):
        x = memory_class(3 << 20)
        x[1:].memset_async(3)
        assert x.tobytes()[-1] == 3
        x.close()


SMALL = {
    "out": lambda small, same: bytes(small.copy_to_host()),
    "bytes": lambda small, same: small.tobytes(),
    "to USM": lambda small, same: (same.copy_from_device(small), same.tobytes())[1],
    "a copy": lambda small, same: zeusm.memory.MemoryUSMHost(small, copy=True).tobytes(),
}


@pytest.mark.parametrize("read", SMALL.values(), ids=SMALL)
def test_small_copies_come_after_what_is_in_flight(memory_class, busy, read):
    small, same = memory_class(64), memory_class(64)
    end = busy()
    small.memset_async(7)
    assert read(small, same) == bytes([7]) * 64
    assert end.is_complete


def test_small_writes_come_after_what_is_in_flight(memory_class, busy):
    small, back = memory_class(64), bytearray(64)
    end = busy()
    small.memset_async(7)
    small.copy_from_host(b"abcd")
    assert end.is_complete
    busy()
    small.memset_async(7)
    small.memset(8)
    small.copy_to_host(back)
    assert back == bytes([8]) * 64


def test_threads_go_on_while_a_small_copy_waits(memory_class, busy):
    small = memory_class(64)
    done = threading.Event()
    turns = 0

    def turn():
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0)

    thread = threading.Thread(target=turn)
    thread.start()
    busy()
    small.memset_async(7)
    before = turns
    assert small.tobytes() == bytes([7]) * 64
    after = turns
    done.set()
    thread.join()
    assert after > before


def test_dropped_in_every_order(busy):
    for order in itertools.permutations(range(5)):
        x, y = zeusm.memory.MemoryUSMDevice(N), zeusm.memory.MemoryUSMShared(N)
        held = [x, y, bytearray(PATTERN)]
        held.append(x.copy_from_host_async(held[2]))
        held.append(y.copy_from_device_async(x, depends=held[3]))
        del x, y
        if order[0] == 0:
            busy()
        for index in order:
            held[index] = None
            gc.collect(0)


@pytest.mark.parametrize(("size", "count"), [(N, 100), (64 * N, 20)], ids=["small", "large"])
def test_buffers_are_released_by_threads_too(size, count):
    # Large copies are in flight when the calls return, and other threads drop their operands.
    def work(value):
        x = CLASSES["device"](size)
        for _ in range(count):
            buffer = bytearray(size)
            x.memset_async(value)
            event = x.copy_to_host_async(buffer)
            assert event.wait()
            assert buffer == bytes([value]) * size
            buffer.append(1)
        done.append(value)

    done = []
    threads = [threading.Thread(target=work, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(8))


@pytest.mark.once
@pytest.mark.parametrize(
    "end",
    [
        "",
        "del event",
        "del event, x, buffer",
        "threading.Thread(target=event.wait, daemon=True).start()",
        "threading.Thread(target=event.wait).start()",
        "raise SystemExit(0)",
        "kept = event.sycl_event",
        "import atexit; atexit.register(lambda: x.copy_to_host_async(bytearray(N)))",
        "cycle = [x, event]; cycle.append(cycle); del event, x",
    ],
)
def test_the_program_may_end_while_work_is_in_flight(fresh, end):
    result = fresh(
        f"""
        import threading
        import zeusm.memory
        N = 64 << 20
        x, large = zeusm.memory.MemoryUSMShared(N), zeusm.memory.MemoryUSMDevice(256 << 20)
        buffer = bytearray(N)
        for turns in 5, 20, 80:  # More where other programs delay this one.
            for value in range(turns):
                event = large.memset_async(value)
            event = x.copy_to_host_async(buffer, depends=event)
            if not event.is_complete:
                break
        assert not event.is_complete
        {end}
        """
    )
    assert result.stderr == ""


def test_a_child_has_nothing_of_its_parent_in_flight(fresh):
    result = fresh(
        """
        import os, sys
        import zeusm.memory
        large = zeusm.memory.MemoryUSMDevice(256 << 20)
        for value in range(5):
            event = large.memset_async(value)
        child = os.fork()
        if child == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert event.wait()
        """,
    )
    assert result.stderr == "" or "DeprecationWarning" in result.stderr


def test_without_dpctl(fresh):
    fresh(
        """
        import sys
        sys.modules["dpctl"] = None
        import zeusm.memory
        x = zeusm.memory.MemoryUSMDevice(4)
        event = x.copy_from_host_async(b"abcd")
        assert event.wait() and x.tobytes() == b"abcd"
        for name, error in [("sycl_event", RuntimeError), ("execution_status", ImportError)]:
            try:
                getattr(event, name)
            except error as caught:
                assert "dpctl" in str(caught), caught
            else:
                raise AssertionError(name)
        """
    )


IN_A_CALLBACK = """
    import sys, zeusm.memory as zm

    # The thread that releases operands without a call does not get the GIL in between.
    sys.setswitchinterval(100)
    pool, memory = zm.get_pool("device"), zm.MemoryUSMDevice(8 << 20)
    memory.memset(1)
    pool.trim()
    pool.set_limit(pool.total_bytes())
    released = []

    def callback(nbytes):
        host = zm.MemoryUSMHost(4 << 20)
        for _ in range(20):
            source = bytearray(host.nbytes)
            copied = host.copy_from_host_async(source)
            while not copied.is_complete:
                pass
            source.append(1)  # A BufferError while it is an operand.
            released.append(True)
        return False

    pool.set_failure_callback(callback)
    try:
        # Overlapping, so that the submission allocates memory.
        memory[1:].copy_from_device(memory[:-1])
    except MemoryError as error:
        assert error.__cause__ is None, error.__cause__
    assert len(released) == 20
"""


def test_operands_are_released_in_a_failure_callback_in_a_submission(fresh):
    fresh(IN_A_CALLBACK)
