"""Asynchronous work: in order, and with everything kept alive that it needs, whoever lets go of what."""

import asyncio
import gc
import itertools
import os
import signal
import threading
import time
import weakref

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory
from conftest import CLASSES

N = 1 << 16
PATTERN = bytes(i % 251 for i in range(N))
# SYCL 2024 makes no event of its own for others to signal.
OLD_SYCL = dpctl.__version__ < "0.19"


@pytest.fixture(scope="module")
def large():
    """Memory that takes a while to fill."""
    return zeusm.memory.MemoryUSMDevice(256 << 20)


@pytest.fixture
def busy(large):
    """Has the default place work for a good while; gives the end of that."""

    def submit():
        for value in range(5):
            end = large.memset_async(value)
        assert not end.is_complete
        return end

    yield submit
    large.memset_async().wait()


def soon(holds):
    """Whether something comes true within seconds, without anybody asking zeusm for anything."""
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)
        gc.collect()
    return holds()


def resizable(buffer):
    """Whether a bytearray lets itself be resized."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True


def test_bytes_go_there_and_back(memory_class):
    x, y = memory_class(N), memory_class(N)
    back = bytearray(N)
    written = x.copy_from_host_async(PATTERN)
    copied = y.copy_from_device_async(x, depends=written)
    read = y.copy_to_host_async(back, depends=[copied])
    assert read.wait() is True
    assert back == PATTERN
    assert y.memset_async(7).wait()
    assert bytes(y) == b"\x07" * N
    assert y.memset_async().wait()
    assert bytes(y) == bytes(N)


def test_the_call_returns_before_the_work_is_done(large, busy):
    end = busy()
    turns = 0
    while not end.is_complete:
        turns += 1
    assert turns > 10
    assert large[-1:].tobytes() == b"\x04"


def test_no_bytes_are_an_operation_too(memory_class):
    x = memory_class(0)
    for event in [
        x.memset_async(1),
        x.copy_from_host_async(b""),
        x.copy_to_host_async(bytearray()),
        x.copy_from_device_async(memory_class(0)),
        x.prefetch(),
        x.mem_advise("bias_cached"),
    ]:
        assert event.wait()
        assert event.duration >= 0


def test_an_operation_on_nothing_has_its_turn(busy):
    busy()
    event = zeusm.memory.MemoryUSMHost(0).memset_async()
    assert not event.is_complete
    assert event.wait()


def test_hints(memory_class):
    x = memory_class(N)
    written = x.copy_from_host_async(PATTERN)
    x.prefetch(depends=written).wait()
    advised = [
        x.mem_advise(advice) for advice in ["set_read_mostly", "clear_read_mostly", "bias_uncached"]
    ]
    assert all(event.wait() for event in advised)
    assert bytes(x) == PATTERN
    with pytest.raises(ValueError, match=r"set_read_mostly.*not kindness"):
        x.mem_advise("kindness")


# --- events ----------------------------------------------------------------------------------------


def test_waiting_has_a_limit(busy):
    end = busy()
    started = time.perf_counter()
    assert end.wait(0) is False
    assert end.wait(-1) is False
    assert end.wait(timeout=0.01) is False
    assert 0.01 <= time.perf_counter() - started < 5
    assert "under way" in repr(end)
    assert end.wait(float("inf")) is True
    assert end.wait(0) is True
    assert "complete" in repr(end)
    with pytest.raises(ValueError, match="seconds"):
        end.wait(float("nan"))
    with pytest.raises(TypeError):
        end.wait("1")


def test_dpctl_names_the_status(busy):
    end = busy()
    assert end.execution_status is dpctl.event_status_type.submitted
    end.wait()
    assert end.execution_status is dpctl.event_status_type.complete


def test_times(large, busy):
    end = busy()
    for name in [
        "duration",
        "profiling_info_submit",
        "profiling_info_start",
        "profiling_info_end",
    ]:
        with pytest.raises(RuntimeError, match="under way"):
            getattr(end, name)
    started = time.perf_counter_ns()
    first, second = large.memset_async(1), large.memset_async(2)
    second.wait()
    elapsed = time.perf_counter_ns() - started
    assert first.profiling_info_start < first.profiling_info_end <= second.profiling_info_start
    assert first.duration == first.profiling_info_end - first.profiling_info_start
    # The second one had to wait for the first one, and was submitted before that was done.
    assert first.profiling_info_submit <= second.profiling_info_submit < first.profiling_info_end
    waited = second.profiling_info_start - second.profiling_info_submit
    # The host's and the device's clock are not read at the same moment.
    unsure = 50_000_000
    assert first.duration - unsure < waited < elapsed + unsure
    time.sleep(0.2)
    again = second.profiling_info_start - second.profiling_info_submit
    assert abs(waited - again) < unsure
    # What 256 MiB take on any machine, and no more than went by.
    assert 100_000 < second.duration < elapsed


def test_events_are_not_made_by_hand():
    with pytest.raises(TypeError):
        zeusm.Event()


def test_asyncio_goes_on_meanwhile(busy):
    async def count(end):
        turns = 0
        while not end.is_complete:
            turns += 1
            await asyncio.sleep(0)
        return turns

    async def main():
        end = busy()
        counted, done = await asyncio.gather(count(end), end_of(end))
        assert counted > 5
        assert done is True

    async def end_of(end):
        return await end

    asyncio.run(main())


def test_interrupts_end_a_wait(busy):
    def wait():
        for _ in range(50):
            busy().wait()

    timer = threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT))
    # A shell that runs the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait()
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


# --- what is kept alive ----------------------------------------------------------------------------


@pytest.mark.parametrize("into_memory", [True, False], ids=["source", "destination"])
def test_a_host_buffer_cannot_be_resized_meanwhile(memory_class, busy, into_memory):
    x = memory_class(N)
    buffer = bytearray(PATTERN)
    busy()
    event = x.copy_from_host_async(buffer) if into_memory else x.copy_to_host_async(buffer)
    assert not resizable(buffer)
    assert not event.is_complete
    event.wait()
    assert resizable(buffer)


def test_waiting_for_the_last_lets_all_buffers_go(busy):
    x = zeusm.memory.MemoryUSMShared(N)
    buffers = [bytearray(N) for _ in range(10)]
    busy()
    events = [x.copy_to_host_async(buffer) for buffer in buffers]
    events[-1].wait()
    assert all(resizable(buffer) for buffer in buffers)


def test_nobody_has_to_ask(busy):
    x = zeusm.memory.MemoryUSMDevice(N)
    buffer = bytearray(N)
    watched = weakref.ref(x)
    busy()
    x.copy_to_host_async(buffer)
    del x
    assert watched() is not None
    assert not resizable(buffer)
    assert soon(lambda: watched() is None and resizable(buffer))


def test_operands_of_a_dropped_event_are_what_they_were(busy):
    class Watched(np.ndarray):
        """An array that can be watched."""

    source = np.frombuffer(PATTERN, "u1").copy().view(Watched)
    x, y = zeusm.memory.MemoryUSMDevice(N), zeusm.memory.MemoryUSMShared(N)
    watched = [weakref.ref(source), weakref.ref(x)]
    busy()
    x.copy_from_host_async(source)
    y.copy_from_device_async(x)
    del source, x
    # Whoever takes their place now must not show up in the copy.
    others = [zeusm.memory.MemoryUSMDevice(N) for _ in range(8)]
    arrays = [np.full(N, 9, "u1") for _ in range(8)]
    assert all(reference() is not None for reference in watched)
    assert bytes(y) == PATTERN
    assert soon(lambda: all(reference() is None for reference in watched))
    del others, arrays


def test_a_pools_block_is_not_given_again_meanwhile(busy, usm_type):
    pool = zeusm.memory.MemoryPool(usm_type)
    memory = pool.malloc(N)
    pointer = memory._pointer
    busy()
    event = memory.memset_async(1)
    del memory
    others = [pool.malloc(N) for _ in range(8)]
    assert pointer not in {other._pointer for other in others}
    assert pool.statistics().used_count == 1 + len(others)
    assert not event.is_complete
    del event
    assert soon(lambda: pool.statistics().used_count == len(others))


def test_a_source_of_another_package_is_kept(busy):
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
    x = memory_class(N)
    busy()
    event = x.memset_async(1)
    with pytest.raises(BufferError, match="operations"):
        x.close()
    event.wait()
    x.close()
    with pytest.raises(ValueError, match="closed"):
        x.memset_async(1)


SMALL = {
    "out": lambda small, same: bytes(small.copy_to_host()),
    "bytes": lambda small, same: small.tobytes(),
    "to USM": lambda small, same: (same.copy_from_device(small), same.tobytes())[1],
    "a copy": lambda small, same: zeusm.memory.MemoryUSMHost(small, copy=True).tobytes(),
}


@pytest.mark.parametrize("read", SMALL.values(), ids=SMALL)
def test_small_copies_come_after_what_is_under_way(memory_class, busy, read):
    small, same = memory_class(64), memory_class(64)
    end = busy()
    small.memset_async(7)
    assert read(small, same) == bytes([7]) * 64
    assert end.is_complete


def test_small_writes_come_after_what_is_under_way(memory_class, busy):
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


def test_buffers_are_let_go_by_threads_too():
    def work(value):
        x = CLASSES["device"](N)
        for _ in range(100):
            buffer = bytearray(N)
            x.memset_async(value)
            event = x.copy_to_host_async(buffer)
            assert event.wait()
            assert buffer == bytes([value]) * N
            buffer.append(1)
        done.append(value)

    done = []
    threads = [threading.Thread(target=work, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(8))


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
def test_the_program_may_end_while_work_is_under_way(fresh, end):
    result = fresh(
        f"""
        import threading
        import zeusm.memory
        N = 64 << 20
        x, large = zeusm.memory.MemoryUSMShared(N), zeusm.memory.MemoryUSMDevice(256 << 20)
        buffer = bytearray(N)
        for value in range(5):
            event = large.memset_async(value)
        event = x.copy_to_host_async(buffer, depends=event)
        assert not event.is_complete
        {end}
        """
    )
    assert result.stderr == ""


def test_a_child_has_nothing_of_its_parents_under_way(fresh):
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


# --- dpctl's events --------------------------------------------------------------------------------


@pytest.fixture
def queue():
    """A queue of dpctl's in the context that zeusm allocates in."""
    x = zeusm.memory.MemoryUSMShared(1)
    return dpctl.SyclQueue(x.sycl_context, x.sycl_device)


@pytest.fixture
def theirs(queue):
    """Memory of dpctl's, large enough for copies to take a while."""
    return [dpctl.memory.MemoryUSMShared(64 << 20, queue=queue) for _ in range(2)]


def test_after_an_event_of_dpctl(queue, theirs):
    source, destination = theirs
    memoryview(source)[-1] = 5
    memoryview(destination)[-1] = 0
    x = zeusm.memory.MemoryUSMDevice(len(memoryview(source)))
    copied = queue.memcpy_async(destination, source, source.nbytes)
    x.copy_from_device_async(destination, depends=[copied, x.memset_async(1)]).wait()
    assert copied.execution_status is dpctl.event_status_type.complete
    assert x[-1:].tobytes() == b"\x05"


def test_after_an_event_behind_a_host_task(queue, theirs):
    """Whose command was not handed to the driver, and whose host task wants the GIL."""
    source, destination = theirs
    x = zeusm.memory.MemoryUSMHost(N)
    for turn in range(10):
        memoryview(source)[:N] = bytes([turn]) * N
        copied = queue.memcpy_async(destination, source, source.nbytes)
        kept = queue._submit_keep_args_alive((source, destination), [copied])
        back = queue.memcpy_async(source, destination, source.nbytes, [kept])
        part = dpctl.memory.MemoryUSMShared(source)
        event = x.copy_from_device_async(zeusm.memory.as_usm_memory(part)[:N], depends=back)
        if turn % 2:
            # It all goes on without them, and without anybody who waits.
            del event, copied, kept, back
        assert bytes(x) == bytes([turn]) * N


def test_complete_events_of_dpctl(queue):
    x = zeusm.memory.MemoryUSMHost(N)
    event = x.memset_async(1, depends=(dpctl.SyclEvent(), queue.submit_barrier()))
    assert event.wait()


def test_before_an_event_of_dpctl(queue, busy):
    x = zeusm.memory.MemoryUSMShared(N)
    seen = dpctl.memory.MemoryUSMShared(N, queue=queue)
    for turn in range(5):
        busy()
        event = x.memset_async(turn)
        theirs = event.sycl_event
        assert isinstance(theirs, dpctl.SyclEvent)
        assert event.sycl_event is theirs
        assert (theirs.execution_status is dpctl.event_status_type.complete) == OLD_SYCL
        copied = queue.memcpy_async(seen, dpctl.memory.as_usm_memory(x), N, [theirs])
        if turn % 2:
            del event, theirs
        copied.wait()
        assert bytes(memoryview(seen)) == bytes([turn]) * N


def test_many_events_for_dpctl(queue):
    x = zeusm.memory.MemoryUSMShared(N)
    seen = dpctl.memory.MemoryUSMShared(x)
    for turn in range(500):
        event = x.memset_async(turn % 256)
        queue.submit_barrier([event.sycl_event]).wait()
        assert memoryview(seen)[-1] == turn % 256


def test_a_complete_event_for_dpctl(queue):
    event = zeusm.memory.MemoryUSMShared(N).memset_async(1)
    event.wait()
    assert event.sycl_event.execution_status is dpctl.event_status_type.complete
    queue.submit_barrier([event.sycl_event]).wait()


def test_what_is_in_an_in_order_queue_comes_first(queue, theirs):
    ordered = dpctl.SyclQueue(queue.sycl_context, queue.sycl_device, property="in_order")
    source, destination = theirs
    x = zeusm.memory.MemoryUSMShared(destination, queue=ordered)
    memoryview(source)[-1] = 6
    memoryview(destination)[-1] = 0
    back = bytearray(x.nbytes)
    copied = ordered.memcpy_async(destination, source, source.nbytes)
    x.copy_to_host_async(back).wait()
    assert copied.execution_status is dpctl.event_status_type.complete
    assert back[-1] == 6


@pytest.mark.parametrize("as_source", [False, True])
def test_what_is_in_an_out_of_order_queue_comes_first(queue, theirs, as_source):
    source, destination = theirs
    assert not queue.is_in_order
    end = zeusm.memory.MemoryUSMShared(destination, queue=queue)[-1:]
    memoryview(source)[-1] = 6
    memoryview(destination)[-1] = 0
    copied = []
    for _ in range(4):
        copied = [queue.memcpy_async(destination, source, source.nbytes, copied)]
    if as_source:
        back = zeusm.memory.MemoryUSMShared(1)
        back.copy_from_device_async(end).wait()
    else:
        back = bytearray(1)
        end.copy_to_host_async(back).wait()
    assert copied[0].execution_status is dpctl.event_status_type.complete
    assert bytes(back) == b"\6"


def test_between_contexts(memory_class, busy):
    device = zeusm.memory.MemoryUSMShared(1).sycl_device
    other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    size = (9 << 20) + 5
    x, y = memory_class(size), memory_class(size, queue=other)
    assert x.sycl_context != y.sycl_context
    content = np.arange(size, dtype="u4").view("u1")[:size].tobytes()
    back = bytearray(size)
    busy()
    x.copy_from_host_async(content)
    copied = y.copy_from_device_async(x)
    # In its turn behind the copy, though of another place.
    x.memset_async(0)
    assert not copied.is_complete
    y.copy_to_host_async(back, depends=copied).wait()
    assert back == content
    assert bytes(x) == bytes(size)


def test_events_of_another_context(busy):
    device = zeusm.memory.MemoryUSMShared(1).sycl_device
    other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    y = zeusm.memory.MemoryUSMShared(N, queue=other)
    end = busy()
    event = y.memset_async(3, depends=end)
    assert not event.is_complete
    event.wait()
    assert end.is_complete
    assert bytes(y) == b"\x03" * N


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "depends", [5, "event", [None], ["event"], object(), [[]], {1: 2}], ids=repr
)
def test_only_events_can_be_depended_on(depends):
    x = zeusm.memory.MemoryUSMHost(4)
    x.memset(1)
    with pytest.raises(TypeError, match="depends must be"):
        x.memset_async(2, depends=depends)
    assert bytes(x) == b"\x01" * 4
    x.close()


def test_none_and_no_events_are_no_dependencies():
    x = zeusm.memory.MemoryUSMHost(4)
    assert x.memset_async(2, depends=None).wait()
    assert x.memset_async(2, depends=[]).wait()
    assert x.memset_async(2, depends=iter(())).wait()


def test_arguments_are_checked_before_anything_begins(memory_class):
    x = memory_class(8)
    x.copy_from_host(b"12345678")
    for call, error in [
        (lambda: x.copy_to_host_async(bytearray(7)), ValueError),
        (lambda: x.copy_to_host_async(b"12345678"), (ValueError, BufferError)),
        (lambda: x.copy_to_host_async(None), TypeError),
        (lambda: x.copy_from_host_async(bytes(9)), ValueError),
        (lambda: x.copy_from_host_async(5), TypeError),
        (lambda: x.copy_from_device_async(memory_class(9)), ValueError),
        (lambda: x.copy_from_device_async(b"1"), ValueError),
        (lambda: x.memset_async(256), ValueError),
        (lambda: x.memset_async("a"), TypeError),
    ]:
        with pytest.raises(error):
            call()
    assert x.tobytes() == b"12345678"
    # Nothing is left behind that would count as a use.
    x.close()


def test_read_only_memory_is_not_written(memory_class):
    class ReadOnly:
        """Somebody's memory, marked read-only."""

        def __init__(self, memory):
            interface = memory.__sycl_usm_array_interface__
            self.memory = memory
            interface["data"] = (interface["data"][0], True)
            self.__sycl_usm_array_interface__ = interface

    x = zeusm.memory.as_usm_memory(ReadOnly(memory_class(8)))
    for call in [
        lambda: x.memset_async(1),
        lambda: x.copy_from_host_async(b"1"),
        lambda: x.copy_from_device_async(memory_class(8)),
    ]:
        with pytest.raises(ValueError, match="read-only"):
            call()
    assert x.copy_to_host_async(bytearray(8)).wait()
