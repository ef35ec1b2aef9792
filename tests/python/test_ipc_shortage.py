"""System resources that IPC cannot get: the error names the resource, and the next call tries again."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from system_calls import FILTER, NO_CAPABILITIES

pytestmark = pytest.mark.once

LIMITED = """
    import ctypes, os, resource, subprocess, sys, textwrap, time, zeusm.memory as zm

    def memory_of(value):
        memory = zm.MemoryUSMHost(300_000)
        memory.memset(value)
        return memory

    def limit_descriptors(spare):
        # The lowest free number is the next one that the process would use.
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + spare, HARD))

    def refusal(call):
        try:
            return call(), None
        except zm.IPCError as error:
            return None, str(error)

    SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
"""
# A process that must not trace this one, so it requests the descriptor over the socket.
ANSWERED = """
    dumpable = 4  # PR_SET_DUMPABLE
    # Drops all capabilities (header version 3).
    READ = '''
        import ctypes, sys, zeusm.memory as zm
        libc = ctypes.CDLL(None)
        assert libc.syscall(126, (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
        print("ready", flush=True)
        with zm.IPCMemoryHandle.open(bytes.fromhex(sys.stdin.readline())) as memory:
            print(set(memory.tobytes()))
    '''

    def reader():
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(READ)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
"""


@pytest.mark.parametrize("spare", range(8))
def test_descriptors_run_short_at_the_first_handle(fresh, spare):
    """The shortage occurs at each step. The next handle is valid, and the process serves requests for it."""
    fresh(
        LIMITED
        + ANSWERED
        + f"""
    first, second = memory_of(3), memory_of(4)
    limit_descriptors({spare})
    handle, told = refusal(first.ipc_handle)
    opened = None
    if handle is not None:
        opened, told = refusal(lambda: zm.IPCMemoryHandle.open(handle))
    assert opened is None or {spare} > 2, "an export needs three descriptors"
    assert opened is not None or "Too many open files" in told and "RLIMIT_NOFILE" in told, told
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))
    for memory in first, second:
        handle = memory.ipc_handle()
        assert zm.IPCMemoryHandle.open(handle).tobytes() == memory.tobytes()
    assert ctypes.CDLL(None).prctl(dumpable, 0) == 0
    told, _ = reader().communicate(handle.to_bytes().hex())
    assert told.split() == ["ready", "{{4}}"], told
"""
    )


def test_an_exporter_short_of_descriptors_answers_later(fresh):
    """It waits for a free descriptor without busy polling."""
    fresh(
        LIMITED
        + ANSWERED
        + """
    memory = memory_of(3)
    raw = memory.ipc_handle().to_bytes().hex()
    others = [reader(), reader()]
    for other in others:
        assert other.stdout.readline() == "ready\\n"
    assert ctypes.CDLL(None).prctl(dumpable, 0) == 0
    # The serving thread may have a descriptor for the first process already; it gets none for the memory's, nor for the second.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, HARD))
    before = time.process_time()
    for other in others:
        other.stdin.write(raw)
        other.stdin.close()
    time.sleep(1)
    spent = time.process_time() - before
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))
    assert spent < 0.05, spent
    for other in others:
        assert other.stdout.read().strip() == "{3}"
        other.stdout.close()
        assert other.wait() == 0
"""
    )


def test_free_memory_that_was_exported_leaves_descriptors_to_other_exports(fresh):
    """A pool caches it, and the driver's descriptors of it stay open."""
    fresh(
        LIMITED
        + """
    free = [zm.MemoryUSMShared(3 << 19) for _ in range(20)]
    handles = [memory.ipc_handle() for memory in free]
    limit_descriptors(0)
    del handles, free
    memories = [zm.MemoryUSMHost(3 << 19) for _ in range(15)]
    handles = [memory.ipc_handle() for memory in memories]
    memories[14].memset(14)
    assert zm.IPCMemoryHandle.open(handles[14]).tobytes() == memories[14].tobytes()
"""
    )


def test_control_c_ends_the_wait_for_a_stopped_exporter():
    """The importer requests the descriptor over the socket."""
    export = """
        import ctypes, sys, zeusm.memory as zm
        memory = zm.MemoryUSMHost(300_000)
        handle = memory.ipc_handle()
        assert ctypes.CDLL(None).prctl(4, 0) == 0  # PR_SET_DUMPABLE
        print(handle.to_bytes().hex(), flush=True)
        sys.stdin.read()
    """
    opens = (
        NO_CAPABILITIES
        + """
    import sys, zeusm.memory as zm
    zm.MemoryUSMHost(64)
    print("ready", flush=True)
    zm.IPCMemoryHandle.open(bytes.fromhex(sys.stdin.readline()))
"""
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for program in (export, opens)
    ]
    owner, other = processes
    handle, ready = (process.stdout.readline() for process in processes)
    assert ready == "ready\n"
    owner.send_signal(signal.SIGSTOP)
    # Its other threads run until the one that gets the signal is scheduled.
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED | os.WNOWAIT)
    other.stdin.write(handle)
    other.stdin.flush()
    time.sleep(0.5)
    other.send_signal(signal.SIGINT)
    try:
        _, told = other.communicate(timeout=30)
    finally:
        owner.kill()
        owner.communicate()
    assert told.splitlines()[-1:] == ["KeyboardInterrupt"], (other.returncode, told)


def test_a_limit_of_file_sizes(fresh):
    fresh(
        LIMITED
        + """
    memory = memory_of(3)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    _, told = refusal(memory.ipc_handle)
    assert "RLIMIT_FSIZE" in told and "File too large" in told, told
    assert zm.IPCMemoryHandle.is_available() is True, "a limit may be raised"
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert zm.IPCMemoryHandle.open(memory.ipc_handle()).tobytes() == memory.tobytes()
"""
    )


@pytest.mark.parametrize(
    ("errno", "told"), [(1, "Operation not permitted"), (38, "not implemented")]
)
def test_a_filter_of_system_calls(fresh, errno, told):
    """Some containers filter memfd_create."""
    fresh(
        LIMITED
        + FILTER
        + f"""
    memory = memory_of(3)
    assert zm.IPCMemoryHandle.is_available() is True
    refuse(319, {errno})
    _, told = refusal(memory.ipc_handle)
    assert "memfd_create" in told and {told!r} in told and "seccomp" in told, told
    assert zm.IPCMemoryHandle.is_available() is False
    assert memory.tobytes() == bytes([3]) * 300_000
"""
    )


USERFAULTFD = 323


def test_a_system_without_userfaultfd(fresh):
    """Memory is in files from the start, so all of it can be exported."""
    fresh(
        LIMITED
        + FILTER
        + f"""
    refuse({USERFAULTFD}, 1)
    assert zm.IPCMemoryHandle.is_available() is True
    memories = [memory_of(3), zm.MemoryUSMHost(100), zm.MemoryUSMHost(100, pool=False)]
    for memory in memories:
        assert zm.IPCMemoryHandle.open(memory.ipc_handle()).tobytes() == memory.tobytes()
    assert zm.IPCMemoryHandle.is_available() is True
"""
    )


def test_userfaultfd_is_forbidden_after_the_first_allocation(fresh):
    """Memory is not in files, and cannot be moved into them any more."""
    fresh(
        LIMITED
        + FILTER
        + f"""
    memory = memory_of(3)
    assert zm.IPCMemoryHandle.is_available() is True
    refuse({USERFAULTFD}, 1)
    for memory in memory, memory_of(3):
        _, told = refusal(memory.ipc_handle)
        assert "does not support" in told, told
        assert "userfaultfd" in told and "Operation not permitted" in told and "seccomp" in told, told
    assert zm.IPCMemoryHandle.is_available() is False
    assert memory.tobytes() == bytes([3]) * 300_000
"""
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide /proc")
def test_no_proc(fresh):
    """/proc is hidden after SYCL, which needs it, is initialised, and only from the calling thread."""
    fresh(
        LIMITED
        + """
    memory = memory_of(3)
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, private = 0x20000, 0x44000  # CLONE_NEWNS; MS_REC | MS_PRIVATE
    assert libc.unshare(new_mounts) == 0, ctypes.get_errno()
    assert libc.mount(None, b"/", None, private, None) == 0, ctypes.get_errno()
    assert libc.mount(b"none", b"/proc", b"tmpfs", 0, None) == 0, ctypes.get_errno()
    _, told = refusal(memory.ipc_handle)
    assert "is /proc mounted?" in told, told
    assert zm.IPCMemoryHandle.is_available() is False
    assert libc.umount(b"/proc") == 0, ctypes.get_errno()
    assert zm.IPCMemoryHandle.open(memory.ipc_handle()).tobytes() == memory.tobytes()
"""
    )
