"""Events between processes: a device waits for another process's operation, whose end is never the end of the wait.

ZEUSM_TEST_HANDOFFS is the number of handoffs, ZEUSM_TEST_KILLS that of processes that are killed at some moment.
"""

import asyncio
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from conftest import in_time
from system_calls import FILTER

HANDOFFS = int(os.environ.get("ZEUSM_TEST_HANDOFFS", "1000"))
KILLS = int(os.environ.get("ZEUSM_TEST_KILLS", "20"))
SPAWN = multiprocessing.get_context("spawn")
SIZE, LARGE = 64 << 10, 64 << 20

# Fills its memory for each line that it reads, and prints the handle of the event before the fills are complete.
PRODUCER = """
    import sys, zeusm.memory as zm
    memory = zm.MemoryUSMHost(int(sys.argv[1]))
    print(memory.ipc_handle().to_bytes().hex(), flush=True)
    for number, _ in enumerate(sys.stdin):
        for _ in range(int(sys.argv[2])):
            filled = memory.memset_async(number % 251)
        print(filled.ipc_handle().to_bytes().hex(), flush=True)
"""


class Producer:
    """A process that runs a program, by default PRODUCER, and is killed at the end of the block."""

    def __init__(self, size=SIZE, turns=1, program=PRODUCER):
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), str(size), str(turns)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def memory(self):
        return zm.IPCMemoryHandle.open(self.receive())

    def receive(self):
        """The next handle; None after the end of the process."""
        line = self.process.stdout.readline()
        return bytes.fromhex(line) if line.endswith("\n") else None

    def request(self):
        """The handle of an event in flight."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.receive()


def produce(inbox, outbox):
    memory = zm.MemoryUSMHost(SIZE)
    outbox.put(memory.ipc_handle())
    copied = None
    for number in range(HANDOFFS):
        outbox.put(memory.memset_async(number % 251, depends=copied).ipc_handle())
        copied = zeusm.IPCEventHandle.open(inbox.get(timeout=120))


@pytest.mark.once
def test_no_handoff_is_early():
    """In both directions: the devices wait, the hosts exchange handles of what is in flight."""
    inbox, outbox = SPAWN.SimpleQueue(), SPAWN.Queue()
    process = SPAWN.Process(target=produce, args=(outbox, inbox))
    process.start()
    own = zm.MemoryUSMHost(SIZE)
    begun = None
    with zm.IPCMemoryHandle.open(inbox.get()) as memory:
        for number in range(HANDOFFS):
            filled = zeusm.IPCEventHandle.open(inbox.get())
            begun = begun or time.monotonic()
            copied = own.copy_from_device_async(memory, depends=filled)
            outbox.put(copied.ipc_handle())
            assert copied.wait(timeout=120)
            assert (np.asarray(own) == number % 251).all(), number
    print(f"{HANDOFFS} handoffs, {(time.monotonic() - begun) / HANDOFFS * 1e6:.0f} us each")
    process.join(120)
    assert process.exitcode == 0


@pytest.mark.once
def test_a_process_that_is_killed_at_any_moment_is_an_error_and_no_hang():
    size, told = 16 << 20, []
    own = zm.MemoryUSMHost(size)
    for _ in range(KILLS):
        with Producer(size) as producer, producer.memory() as memory:
            killer = threading.Timer(random.uniform(0, 0.04), producer.process.kill)
            killer.start()
            number = 0
            try:
                while (raw := producer.request()) is not None:
                    filled = zeusm.IPCEventHandle.open(raw)
                    copied = own.copy_from_device_async(memory, depends=filled)
                    assert copied.wait(timeout=120)
                    assert (np.asarray(own) == number % 251).all()
                    number += 1
            except zm.IPCError as error:
                told.append((f"process {producer.process.pid}", str(error)))
            killer.join()
            # Until the copy does not use the memory any more.
            assert own.memset_async(1).wait(timeout=120)
    print(f"{len(told)} of {KILLS} have ended in an error")
    assert all(process in error for process, error in told), told


def test_everything_that_waits_has_the_error():
    source, own = zm.MemoryUSMDevice(SIZE), zm.MemoryUSMShared(SIZE)
    with Producer(LARGE, 40) as producer:
        event = zeusm.IPCEventHandle.open(producer.receive() and producer.request())
        operations = [
            own.memset_async(1, depends=event),
            own.copy_from_device_async(source, depends=[event]),
            own.copy_from_host_async(bytes(SIZE), depends=(event,)),
            own.copy_to_host_async(bytearray(SIZE), depends=event),
            own.prefetch(depends=event),
        ]
        assert not event.is_complete
        assert not operations[-1].is_complete
        assert event.wait(timeout=0.01) is False
        assert "in flight" in repr(event)
        producer.process.kill()
        failed = [event, *operations]
        for each in failed:
            with pytest.raises(zm.IPCError, match=f"process {producer.process.pid} has ended"):
                each.wait(timeout=120)
            with pytest.raises(zm.IPCError):
                _ = each.is_complete
            with pytest.raises(zm.IPCError):
                own.memset_async(2, depends=each)
            with pytest.raises(zm.IPCError):
                each.ipc_handle()
            assert "failed in another process" in repr(each)
        assert own.memset_async(3).wait()
        assert bytes(own[:1]) == b"\x03"


def test_a_blocking_operation_behind_it_ends():
    own = zm.MemoryUSMShared(SIZE)
    with Producer(LARGE, 40) as producer:
        event = zeusm.IPCEventHandle.open(producer.receive() and producer.request())
        own.memset_async(1, depends=event)
        threading.Timer(0.05, producer.process.kill).start()
        with pytest.raises(RuntimeError, match=f"process {producer.process.pid} has ended"):
            own.memset(2)
        own.memset(3)
        assert bytes(own[:1]) == b"\x03"


def test_events_of_sycl_and_of_loops_wait_for_it():
    memory = zm.MemoryUSMShared(SIZE)
    queue = dpctl.SyclQueue(memory.sycl_context, memory.sycl_device)
    with Producer(LARGE, 4) as producer:
        producer.receive()

        def attempt(_):
            event = zeusm.IPCEventHandle.open(producer.request())
            barrier = queue.submit_barrier([event.sycl_event])
            status = dpctl.event_status_type
            was_waiting = barrier.execution_status != status.complete and not event.is_complete
            barrier.wait()
            assert event.is_complete
            assert event.execution_status == status.complete
            return was_waiting or dpctl.__version__ < "0.18"  # SYCL 2024 blocks.

        in_time(attempt)

        async def main():
            return await zeusm.IPCEventHandle.open(producer.request())

        assert asyncio.run(main()) is True


def test_an_event_has_no_timestamps_here(busy):
    handle = busy().ipc_handle()
    event = zeusm.IPCEventHandle.open(handle)
    assert event.wait()
    for each in (event, zeusm.IPCEventHandle.open(handle)):
        assert each.is_complete
        for name in ("duration", "profiling_info_start", "profiling_info_submit"):
            with pytest.raises(zeusm.LevelZeroError, match="another process's"):
                getattr(each, name)


def test_handles_are_sent_by_any_means(busy):
    event = busy()
    handle = event.ipc_handle()
    assert handle.pid == os.getpid()
    assert f"pid={os.getpid()}" in repr(handle)
    assert handle.device_uuid == zm.MemoryUSMDevice(64).ipc_handle().device_uuid
    raw = handle.to_bytes()
    assert bytes(pickle.loads(pickle.dumps(handle))) == bytes(handle) == raw
    opened = [
        zeusm.IPCEventHandle.open(handle),
        zeusm.IPCEventHandle.open(raw),
        zeusm.IPCEventHandle.open(bytearray(raw), device=event.sycl_event and None),
        zeusm.IPCEventHandle.open(zeusm.IPCEventHandle.from_bytes(raw)),
    ]
    del event, handle
    assert all(each.wait(timeout=120) for each in opened)
    # After the end of the operation, too.
    assert zeusm.IPCEventHandle.open(raw).wait()


def test_other_arguments():
    event = zm.MemoryUSMDevice(64).memset_async(1)
    with pytest.raises(TypeError, match="not str"):
        zeusm.IPCEventHandle.open("handle")
    with pytest.raises(zm.IPCError, match="handle of memory"):
        zeusm.IPCEventHandle.from_bytes(bytes(zm.MemoryUSMDevice(64).ipc_handle()))
    with pytest.raises(zm.IPCError, match="handle of an event"):
        zm.IPCMemoryHandle.open(bytes(event.ipc_handle()))
    with pytest.raises(TypeError):
        zeusm.IPCEventHandle()


def test_forks():
    """An inherited event is complete; a child that outlives its parent does not keep that alive for others."""
    program = """
        import os, sys, zeusm.memory as zm
        memory = zm.MemoryUSMDevice(64 << 20)
        bytes(memory.memset_async(1).ipc_handle())
        if not (child := os.fork()):
            os.read(0, 1)  # Until the end of the test.
            os._exit(0)
        print(child, flush=True)
        events = [memory.memset_async(2) for _ in range(40)]
        print(events[-1].ipc_handle().to_bytes().hex(), flush=True)
        sys.stdin.read()
    """
    with Producer(program=program) as producer:
        child = int(producer.process.stdout.readline())
        event = zeusm.IPCEventHandle.open(producer.receive())
        if not os.fork():
            os._exit(0 if event.is_complete and event.wait() else 1)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        producer.process.kill()
        os.kill(child, 0)
        with pytest.raises(zm.IPCError, match=f"process {producer.process.pid} has ended"):
            event.wait(timeout=120)


def test_a_process_that_executes_another_program_has_ended():
    program = """
        import os, sys, zeusm.memory as zm
        memory = zm.MemoryUSMDevice(64 << 20)
        events = [memory.memset_async(2) for _ in range(40)]
        print(events[-1].ipc_handle().to_bytes().hex(), flush=True)
        sys.stdin.readline()
        os.execv(sys.executable, [sys.executable, "-c", "input()"])
    """
    with Producer(program=program) as producer:
        event = zeusm.IPCEventHandle.open(producer.receive())
        producer.process.stdin.write("\n")
        producer.process.stdin.flush()
        with pytest.raises(zm.IPCError, match="has ended"):
            event.wait(timeout=120)
        assert producer.process.poll() is None


def test_ctrl_c_ends_the_wait_at_the_exit():
    """Another process's operation may not end, as that of a stopped one."""
    program = """
        import os, signal, sys, zeusm, zeusm.memory as zm
        memory = zm.MemoryUSMDevice(64)
        print(memory.memset(0), flush=True)
        event = zeusm.IPCEventHandle.open(bytes.fromhex(input()))
        os.kill(int(sys.argv[1]), signal.SIGSTOP)
        operation = memory.memset_async(1, depends=event)
        print(operation.is_complete, flush=True)
    """

    def attempt(turns):
        with Producer(LARGE, turns) as producer:
            assert producer.receive()
            command = [sys.executable, "-c", textwrap.dedent(program)]
            command.append(str(producer.process.pid))
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            with subprocess.Popen(command, text=True, **pipes) as consumer:
                assert consumer.stdout.readline() == "None\n"
                consumer.stdin.write(producer.request().hex() + "\n")
                consumer.stdin.flush()
                if consumer.stdout.readline() != "False\n":
                    return False
                with pytest.raises(subprocess.TimeoutExpired):
                    consumer.wait(timeout=0.5)
                consumer.send_signal(signal.SIGINT)
                _, errors = consumer.communicate(timeout=120)
        assert consumer.returncode == 0
        assert "KeyboardInterrupt" in errors
        return True

    in_time(attempt)


def test_the_exit_of_a_process_is_the_end_of_its_operations():
    """At its exit the interpreter waits for them."""
    program = """
        import zeusm.memory as zm
        memory = zm.MemoryUSMDevice(64 << 20)
        events = [memory.memset_async(2) for _ in range(40)]
        print(events[-1].ipc_handle().to_bytes().hex(), flush=True)
        input()
    """
    with Producer(program=program) as producer:
        raw = producer.receive()
        event = zeusm.IPCEventHandle.open(raw)
        producer.process.stdin.write("\n")
        producer.process.stdin.flush()
        assert event.wait(timeout=120)
        assert producer.process.wait() == 0
        assert event.is_complete
        with pytest.raises(zm.IPCError, match="is gone"):
            zeusm.IPCEventHandle.open(raw)


def test_a_driver_without_events_between_processes(fresh, stand_in):
    library = stand_in(
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdint.h>

        typedef struct { uint32_t stype; const void *next; uint32_t flags; } properties;

        uint32_t zeDriverGetIpcProperties(void *driver, properties *found)
        {
            uint32_t (*behind)(void *, properties *) = dlsym(RTLD_NEXT, "zeDriverGetIpcProperties");
            uint32_t result = behind(driver, found);
            found->flags &= ~2u; /* ZE_IPC_PROPERTY_FLAG_EVENT_POOL */
            return result;
        }

        uint32_t zeEventPoolGetIpcHandle(void *pool, void *handle)
        {
            (void)pool;
            (void)handle;
            return 0x78000003; /* ZE_RESULT_ERROR_UNSUPPORTED_FEATURE */
        }
        """
    )
    fresh(
        """
        import zeusm, zeusm.memory as zm
        assert zeusm.IPCEventHandle.is_available() is False
        assert zm.IPCMemoryHandle.is_available() is True
        memory = zm.MemoryUSMDevice(64 << 20)
        try:
            [memory.memset_async(1) for _ in range(20)][-1].ipc_handle()
        except zm.IPCError as error:
            assert "does not support events between processes" in str(error), error
        else:
            raise AssertionError
        """,
        env={"ZEUSM_RUNTIME": str(library)},
    )


@pytest.mark.once
def test_a_filter_of_system_calls(fresh):
    fresh(
        FILTER
        + """
    import zeusm, zeusm.memory as zm
    memory = zm.MemoryUSMDevice(64 << 20)
    memory.memset_async(1).wait()
    assert zeusm.IPCEventHandle.is_available() is True
    refuse(319, 1)
    try:
        [memory.memset_async(1) for _ in range(20)][-1].ipc_handle()
    except zm.IPCError as error:
        assert "memfd_create" in str(error) and "seccomp" in str(error), error
    else:
        raise AssertionError
    assert zeusm.IPCEventHandle.is_available() is False
"""
    )


def test_a_stopped_process_delays_a_wait():
    """It is alive, so that the wait goes on; the timeout and Ctrl-C end it."""
    with Producer(LARGE, 40) as producer:
        event = zeusm.IPCEventHandle.open(producer.receive() and producer.request())
        producer.process.send_signal(signal.SIGSTOP)
        assert event.wait(timeout=0.3) is False
        producer.process.send_signal(signal.SIGCONT)
        assert event.wait(timeout=120)
