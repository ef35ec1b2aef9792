"""Asynchronous operations with SYCL events and queues, and between contexts."""

import functools

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory
from conftest import in_time

N = 1 << 16
# SYCL 2024 cannot create an event that Level Zero signals.
OLD_SYCL = dpctl.__version__ < "0.19"


@pytest.fixture
def queue():
    """A dpctl queue in the context of zeusm's allocations."""
    x = zeusm.memory.MemoryUSMShared(1)
    return dpctl.SyclQueue(x.sycl_context, x.sycl_device)


@pytest.fixture
def theirs(queue):
    """Two dpctl allocations, large enough for copies to stay in flight."""
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
    """SYCL defers the command of the event behind a host task, which needs the GIL."""
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
            # The operations complete without references to their events, and without a wait.
            del event, copied, kept, back
        assert bytes(x) == bytes([turn]) * N


def test_complete_events_of_dpctl(queue):
    x = zeusm.memory.MemoryUSMHost(N)
    event = x.memset_async(1, depends=(dpctl.SyclEvent(), queue.submit_barrier()))
    assert event.wait()


def test_before_an_event_of_dpctl(queue, busy):
    x = zeusm.memory.MemoryUSMShared(N)
    seen = dpctl.memory.MemoryUSMShared(N, queue=queue)

    def attempt(turn, turns):
        busy(turns)
        event = x.memset_async(turn)
        theirs = event.sycl_event
        assert isinstance(theirs, dpctl.SyclEvent)
        assert event.sycl_event is theirs
        is_complete = theirs.execution_status is dpctl.event_status_type.complete
        copied = queue.memcpy_async(seen, dpctl.memory.as_usm_memory(x), N, [theirs])
        if turn % 2:
            del event, theirs
        copied.wait()
        assert bytes(memoryview(seen)) == bytes([turn]) * N
        return is_complete == OLD_SYCL

    for turn in range(5):
        in_time(functools.partial(attempt, turn))


def test_many_events_for_dpctl(queue):
    x = zeusm.memory.MemoryUSMShared(N)
    seen = dpctl.memory.MemoryUSMShared(x)
    for turn in range(500):
        event = x.memset_async(turn % 256)
        queue.submit_barrier([event.sycl_event]).wait()
        assert memoryview(seen)[-1] == turn % 256


DROPPED = """
import faulthandler
import dpctl
import dpctl.memory
import zeusm.memory as zm

faulthandler.dump_traceback_later(60, exit=True)
queue = dpctl.SyclQueue("level_zero:gpu")
slow, waiting = (dpctl.SyclQueue(queue.sycl_context, queue.sycl_device, property="in_order") for _ in "ab")
large = [dpctl.memory.MemoryUSMDevice(1 << 26, queue=slow) for _ in "ab"]
for one in large:
    one.copy_from_host(bytearray(1 << 26))
work, x = zm.MemoryUSMDevice(1 << 28, queue=queue), zm.MemoryUSMDevice(4096, queue=queue)
seen = dpctl.memory.MemoryUSMHost(4096, queue=waiting)
for turn in range(6):
    work.memset_async(turn)
    event = x.memset_async(turn).sycl_event
    for _ in range(20):
        slower = slow.memcpy_async(*large, 1 << 26)
    waiting.submit_barrier([slower, event])
    copied = waiting.memcpy_async(seen, dpctl.memory.as_usm_memory(x), 4096)
    del event
    copied.wait()
    assert bytes(seen) == bytes([turn]) * 4096
"""


@pytest.mark.parametrize("adapter", ["0", "1"])
def test_an_event_may_be_dropped_while_a_command_waits_for_it(fresh, adapter):
    fresh(DROPPED, env={"SYCL_UR_USE_LEVEL_ZERO_V2": adapter})


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

    def attempt(turns):
        back = bytearray(size)
        busy(turns)
        x.copy_from_host_async(content)
        copied = y.copy_from_device_async(x)
        # Ordered behind the copy, which another context's queue executes.
        x.memset_async(0)
        is_pending = not copied.is_complete
        y.copy_to_host_async(back, depends=copied).wait()
        assert back == content
        assert bytes(x) == bytes(size)
        return is_pending

    in_time(attempt)


def test_events_of_another_context(busy):
    device = zeusm.memory.MemoryUSMShared(1).sycl_device
    other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    y = zeusm.memory.MemoryUSMShared(N, queue=other)

    def attempt(turns):
        end = busy(turns)
        event = y.memset_async(3, depends=end)
        is_pending = not event.is_complete
        event.wait()
        assert end.is_complete
        assert bytes(y) == b"\x03" * N
        return is_pending

    in_time(attempt)
