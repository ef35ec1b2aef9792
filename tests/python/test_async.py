"""Asynchronous operations: their order, their events, and rejected arguments."""

import asyncio
import os
import signal
import threading
import time

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory
from conftest import in_time

N = 1 << 16
PATTERN = bytes(i % 251 for i in range(N))


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
    def attempt(turns):
        busy(turns)
        event = zeusm.memory.MemoryUSMHost(0).memset_async()
        is_pending = not event.is_complete
        assert event.wait()
        return is_pending

    in_time(attempt)


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
    end = None

    def attempt(turns):
        nonlocal end
        end = busy(turns)
        started = time.perf_counter()
        answers = [end.wait(0), end.wait(-1), end.wait(timeout=0.01)]
        waited, text = time.perf_counter() - started, repr(end)
        if end.is_complete:
            return False
        assert answers == [False] * 3
        assert 0.01 <= waited < 5
        assert "in flight" in text
        return True

    in_time(attempt)
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
        with pytest.raises(RuntimeError, match="in flight"):
            getattr(end, name)
    started = time.perf_counter_ns()
    first, second = large.memset_async(1), large.memset_async(2)
    second.wait()
    elapsed = time.perf_counter_ns() - started
    assert first.profiling_info_start < first.profiling_info_end <= second.profiling_info_start
    assert first.duration == first.profiling_info_end - first.profiling_info_start
    # The second operation was submitted while the first one was in flight, and waited for it.
    assert first.profiling_info_submit <= second.profiling_info_submit < first.profiling_info_end
    waited = second.profiling_info_start - second.profiling_info_submit
    # The clocks of host and device are not read at the same time.
    unsure = 50_000_000
    assert first.duration - unsure < waited < elapsed + unsure
    time.sleep(0.2)
    again = second.profiling_info_start - second.profiling_info_submit
    assert abs(waited - again) < unsure
    # A lower bound for 256 MiB on any machine, and the elapsed time.
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
        assert done is True
        return counted

    async def end_of(end):
        return await end

    # On a loaded machine, the work may be complete after a few turns.
    assert any(asyncio.run(main()) > 5 for _ in range(20))


def test_interrupts_end_a_wait(busy):
    def wait():
        for _ in range(50):
            busy().wait()

    timer = threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT))
    # Processes that a shell runs in the background ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait()
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


# --- rejected arguments ----------------------------------------------------------------------------


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
    # No pin remains that would prevent the close.
    x.close()


@pytest.mark.parametrize("way", ["copy_from_host", "copy_from_host_async"])
def test_read_only_sources_at_any_address(memory_class, tmp_path, way):
    """Intel's driver stages them, with a wait list in another way than without one."""
    content = np.random.default_rng(1).integers(0, 256, 4 << 20, dtype="u1")
    content.tofile(tmp_path / "content")
    source = np.memmap(tmp_path / "content", dtype="u1", mode="r")
    busy, memory = zeusm.memory.MemoryUSMDevice(64 << 20), memory_class(300_000)
    for offset in 0, 1, 2, 3, 4, 4097:
        busy.memset_async(1)
        copied = getattr(memory, way)(source[offset : offset + memory.nbytes])
        if copied is not None:
            copied.wait()
        assert memory.tobytes() == content[offset : offset + memory.nbytes].tobytes(), offset


def test_read_only_memory_is_not_written(memory_class):
    class ReadOnly:
        """An exporter of memory that is marked read-only."""

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
