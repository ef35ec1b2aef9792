"""IPC of USM memory: handles sent by queue, socket and file, and the errors of opening them."""

import copy
import ctypes
import gc
import multiprocessing
import os
import pickle
import socket
import struct
import subprocess
import sys
import time
import uuid
import zlib
from pathlib import Path

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm.memory as zm
from system_calls import NO_CAPABILITIES

pytestmark = pytest.mark.once

IPC_CLASSES = {
    "device": zm.MemoryIPCDevice,
    "shared": zm.MemoryIPCShared,
    "host": zm.MemoryIPCHost,
}
SPAWN = multiprocessing.get_context("spawn")
PATTERN = bytes(range(256)) * 40


def filled(memory_class, content=PATTERN):
    memory = memory_class(len(content))
    memory.copy_from_host(content)
    return memory


def edited(raw, place, change):
    """The handle with bytes replaced from the offset `place` on, and a valid checksum."""
    content = raw[:place] + change + raw[place + len(change) : -4]
    return content + struct.pack("<I", zlib.crc32(content))


@pytest.mark.parametrize("kind", ["MemoryUSMDevice", "MemoryUSMHost"])
def test_a_handle_of_ones_own_opens_after_another_export_has_ended(fresh, kind):
    """Intel's driver then has closed descriptors that it remembers: it refuses their numbers."""
    fresh(
        """
        import os
        import sys

        import zeusm.memory as zm

        def new():
            memory = getattr(zm, sys.argv[1])(1000, pool=False)
            memory.memset(7)
            return memory

        first, second, third = new(), new(), new()
        gaps = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]
        bytes(first.ipc_handle())
        os.close(gaps[5])
        handle = bytes(second.ipc_handle())
        os.close(gaps[1])
        first = third = None
        for _ in range(3):
            with zm.IPCMemoryHandle.open(handle) as opened:
                assert opened.tobytes() == bytes([7]) * 1000
        """,
        kind,
    )


def descriptors():
    return len(os.listdir("/proc/self/fd"))


# --- programs of the other process ---------------------------------------------------------------


def reverse(inbox, outbox):
    """Reverses the bytes of the memory of each handle that it receives."""
    for handle in iter(inbox.get, None):
        with zm.IPCMemoryHandle.open(handle) as memory:
            memory.copy_from_host(memory.tobytes()[::-1])
            outbox.put((type(memory).__name__, memory.nbytes))


READ = """
    import sys, zeusm.memory as zm
    raw = open(sys.argv[1], "rb").read()
    with zm.IPCMemoryHandle.open(raw) as memory:
        sys.stdout.buffer.write(memory.tobytes())
"""
ANSWER = """
    import sys, zeusm.memory as zm
    try:
        zm.IPCMemoryHandle.open(open(sys.argv[1], "rb").read())
    except zm.IPCError as error:
        print(error)
"""


@pytest.fixture
def secluded():
    """Forbids other processes of this user to trace this one."""
    libc = ctypes.CDLL(None)
    dumpable = 4  # PR_SET_DUMPABLE
    assert libc.prctl(dumpable, 0) == 0
    yield
    libc.prctl(dumpable, 1)


@pytest.fixture
def sent(tmp_path):
    """Writes a handle to a file, and returns its path."""

    def send(raw):
        path = tmp_path / "handle"
        path.write_bytes(bytes(raw))
        return path

    return send


# --- transport between processes -----------------------------------------------------------------


def test_queue(usm_type, memory_class):
    memory, large = filled(memory_class), filled(memory_class, PATTERN * 500)
    inbox, outbox = SPAWN.Queue(), SPAWN.Queue()
    process = SPAWN.Process(target=reverse, args=(inbox, outbox))
    process.start()
    for each, content in [(memory, PATTERN), (large, PATTERN * 500), (memory[100:300], None)]:
        before = each.tobytes()
        assert content is None or before == content
        inbox.put(each.ipc_handle())
        assert outbox.get(timeout=120) == (IPC_CLASSES[usm_type].__name__, each.nbytes)
        assert each.tobytes() == before[::-1]
    inbox.put(None)
    process.join()
    assert process.exitcode == 0
    part = PATTERN[::-1][100:300][::-1]
    assert memory.tobytes() == PATTERN[::-1][:100] + part + PATTERN[::-1][300:]


def test_socket(memory_class):
    memory = filled(memory_class)
    handle = memory.ipc_handle()
    ours, theirs = socket.socketpair()
    code = (
        "import socket, sys, zeusm.memory as zm\n"
        "with socket.socket(fileno=int(sys.argv[1])) as peer:\n"
        "    with zm.IPCMemoryHandle.open(peer.recv(1000)) as memory:\n"
        "        memory.memset(5)\n"
        "        peer.sendall(b'done')\n"
    )
    with ours, theirs:
        number = theirs.fileno()
        with subprocess.Popen(
            [sys.executable, "-c", code, str(number)], pass_fds=[number]
        ) as other:
            ours.sendall(handle.to_bytes())
            assert ours.recv(10) == b"done"
        assert other.returncode == 0
    assert memory.tobytes() == bytes([5]) * len(PATTERN)


def test_file(fresh, sent, memory_class):
    memory = filled(memory_class, b"through a file")
    result = fresh(READ, sent(memory.ipc_handle().to_bytes()))
    assert result.stdout == "through a file"


def test_where_tracing_is_forbidden(fresh, sent, secluded, memory_class):
    memory = filled(memory_class, b"over the socket")
    handle = memory.ipc_handle()
    proof = f"""
    import os
    process = os.pidfd_open({os.getpid()})
    assert libc.syscall(438, process, 0, 0) == -1
    assert ctypes.get_errno() == 1  # EPERM
"""
    result = fresh(NO_CAPABILITIES + proof + READ, sent(handle))
    assert result.stdout == "over the socket"
    raw = handle.to_bytes()
    handle.close()
    memory.close()
    assert "freed by its owner" in fresh(NO_CAPABILITIES + ANSWER, sent(raw)).stdout


# --- opening and closing -------------------------------------------------------------------------


def test_opened_memory_is_memory(usm_type, memory_class):
    memory = filled(memory_class)
    opened = zm.IPCMemoryHandle.open(memory.ipc_handle())
    assert isinstance(opened, IPC_CLASSES[usm_type])
    assert isinstance(opened, memory_class)
    assert not isinstance(memory, IPC_CLASSES[usm_type])
    assert opened.get_usm_type() == opened.exported_usm_type == usm_type
    assert opened.nbytes == opened.size == len(opened) == len(PATTERN)
    assert opened._pointer != memory._pointer
    assert opened.sycl_context == memory.sycl_context
    assert opened[256:512].tobytes() == PATTERN[:256]
    other = memory_class(len(PATTERN))
    other.copy_from_device(opened)
    assert other.tobytes() == PATTERN
    # A pickle of memory is a copy, of opened memory too.
    assert pickle.loads(pickle.dumps(opened)).tobytes() == PATTERN
    theirs = dpctl.memory.as_usm_memory(opened)
    assert theirs.get_usm_type() == usm_type
    assert theirs.copy_to_host().tobytes() == PATTERN


def test_the_host_looks_at_host_and_shared_memory(host_class):
    memory = host_class(800)
    opened = zm.IPCMemoryHandle.open(memory.ipc_handle())
    np.frombuffer(memory, dtype=np.float64)[:] = 1.5
    assert (np.frombuffer(opened, dtype=np.float64) == 1.5).all()


def test_the_host_does_not_look_at_device_memory():
    memory = zm.MemoryUSMDevice(800)
    with pytest.raises(TypeError, match="cannot be accessed by the host"):
        memoryview(zm.IPCMemoryHandle.open(memory.ipc_handle()))


def test_twice_is_one_mapping(memory_class):
    memory = filled(memory_class)
    handle = memory.ipc_handle()
    first, second = zm.IPCMemoryHandle.open(handle), zm.IPCMemoryHandle.open(handle)
    address = first._pointer
    assert second._pointer == address
    context = memory.sycl_context
    first.close()
    assert second.tobytes() == PATTERN
    assert second.get_usm_type(context) != "unknown"
    # A slice also retains the mapping.
    part = second[:10]
    del second
    gc.collect()
    assert part.tobytes() == PATTERN[:10]
    del part
    gc.collect()
    third = zm.IPCMemoryHandle.open(handle)
    assert third.tobytes() == PATTERN


def test_closing_unmaps():
    memory = filled(zm.MemoryUSMDevice)
    handle = memory.ipc_handle()

    def mappings():
        return Path("/proc/self/maps").read_text().count("memfd:zeusm ")

    before = mappings()
    first, second = zm.IPCMemoryHandle.open(handle), zm.IPCMemoryHandle.open(handle)
    assert mappings() == before + 1
    first.close()
    assert mappings() == before + 1
    second.close()
    assert mappings() == before


def test_with_closes(memory_class):
    memory = filled(memory_class)
    with memory.ipc_handle() as handle, zm.IPCMemoryHandle.open(handle) as opened:
        assert not opened.is_closed
        assert not handle.closed
    assert handle.closed
    assert opened.is_closed
    assert opened.closed
    assert opened._pointer == opened.nbytes == len(opened) == 0
    opened.close()
    with pytest.raises(ValueError, match="closed"):
        opened.tobytes()
    with pytest.raises(RuntimeError, match="closed"):
        handle.to_bytes()
    with pytest.raises(RuntimeError, match="closed"):
        zm.IPCMemoryHandle.open(handle)


def test_closing_under_a_view_is_refused(host_class):
    opened = zm.IPCMemoryHandle.open(filled(host_class).ipc_handle())
    view = memoryview(opened)
    with pytest.raises(BufferError):
        opened.close()
    view.release()
    opened.close()


def test_closing_under_a_slice_is_refused(memory_class):
    """As for all memory that other objects share. Another object that was opened from the handle does not prevent it."""
    handle = filled(memory_class).ipc_handle()
    opened, other = zm.IPCMemoryHandle.open(handle), zm.IPCMemoryHandle.open(handle)
    part = opened[5:9]
    with pytest.raises(BufferError, match="share"):
        opened.close()
    assert (opened.closed, part.tobytes()) == (False, PATTERN[5:9])
    other.close()
    del part
    gc.collect()
    opened.close()
    assert opened.closed


def test_no_size_is_needed_and_a_smaller_one_is_taken(memory_class):
    handle = filled(memory_class).ipc_handle()
    device = dpctl.SyclDevice()
    assert zm.IPCMemoryHandle.open(handle.to_bytes(), device).nbytes == len(PATTERN)
    opened = zm.IPCMemoryHandle.open(handle.to_bytes(), device, nbytes=16)
    assert opened.tobytes() == PATTERN[:16]
    for wrong in [0, -1, len(PATTERN) + 1]:
        with pytest.raises(ValueError, match="nbytes"):
            zm.IPCMemoryHandle.open(handle, device, wrong)


def test_many_exported_blocks_share_descriptors(fresh):
    """One for each slab, and none for each block: the limit of open files is 1024 on most systems."""
    fresh("""
        import os, resource
        import zeusm.memory as zm

        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
        blocks = [zm.MemoryUSMDevice(64) for _ in range(1100)]
        blocks[0].ipc_handle()  # Starts the server.
        before = len(os.listdir("/proc/self/fd"))
        handles = [block.ipc_handle().to_bytes() for block in blocks]
        slabs = len(zm.snapshot()["slabs"]["address"])
        assert len(os.listdir("/proc/self/fd")) < before + slabs
        for number, block in enumerate(blocks):
            block.memset(number % 256)
        opened = [zm.IPCMemoryHandle.open(handle) for handle in handles]
        assert all(memory.tobytes() == bytes([n % 256]) * 64 for n, memory in enumerate(opened))
        assert len(os.listdir("/proc/self/fd")) < before + slabs
    """)


def test_nothing_leaks_over_many_openings():
    memory = filled(zm.MemoryUSMHost)
    raw = memory.ipc_handle().to_bytes()

    def open_another():
        other = zm.MemoryUSMDevice(300_000)
        zm.IPCMemoryHandle.open(other.ipc_handle()).close()

    # Resources that stay allocated, such as a pool's memory, exist after the first round.
    zm.IPCMemoryHandle.open(raw).close()
    open_another()
    gc.collect()
    before = descriptors()
    for number in range(10_000):
        zm.IPCMemoryHandle.open(raw).close()
        if number % 100 == 0:
            open_another()
    assert descriptors() == before


# --- the handle ----------------------------------------------------------------------------------


def test_the_handle_says_what_it_is_of(usm_type, memory_class):
    memory = filled(memory_class)
    whole, part = memory.ipc_handle(), zm.IPCMemoryHandle(memory[1000:1500])
    assert (whole.nbytes, part.nbytes) == (len(PATTERN), 500)
    assert part.offset == whole.offset + 1000
    assert whole.usm_type == usm_type
    assert whole.allocation_id == part.allocation_id > 0
    assert whole.pid == os.getpid()
    assert isinstance(whole.device_uuid, uuid.UUID)
    assert repr(whole) == f"IPCMemoryHandle(size={len(bytes(whole))}, closed=False)"
    for again in [pickle.loads(pickle.dumps(part)), zm.IPCMemoryHandle.from_bytes(bytes(part))]:
        assert again.to_bytes() == part.to_bytes()
        assert again.offset == part.offset
        assert zm.IPCMemoryHandle.open(again).tobytes() == PATTERN[1000:1500]


@pytest.mark.parametrize("copied", [lambda handle: handle, copy.copy, copy.deepcopy])
def test_the_handle_keeps_the_memory_until_it_is_closed(copied):
    handle = copied(filled(zm.MemoryUSMDevice).ipc_handle())
    gc.collect()
    raw = handle.to_bytes()
    assert zm.IPCMemoryHandle.open(raw).tobytes() == PATTERN
    handle.close()
    with pytest.raises(zm.IPCError, match="freed by its owner"):
        zm.IPCMemoryHandle.open(raw)
    with pytest.raises(RuntimeError, match="closed"):
        copied(handle).to_bytes()


def test_what_cannot_be_exported():
    with pytest.raises(TypeError, match="USM memory objects"):
        zm.IPCMemoryHandle(b"bytes")
    with pytest.raises(ValueError, match="null pointer"):
        zm.MemoryUSMShared(0).ipc_handle()
    closed = zm.MemoryUSMShared(64)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.ipc_handle()
    opened = zm.IPCMemoryHandle.open(filled(zm.MemoryUSMHost).ipc_handle())
    with pytest.raises(ValueError, match="pass that handle on"):
        opened.ipc_handle()


# --- rejected handles ----------------------------------------------------------------------------


def test_what_is_no_handle_is_named():
    for other in None, 5, "text", memoryview(b"x"):
        with pytest.raises(TypeError, match=f"an IPCMemoryHandle, not {type(other).__name__}"):
            zm.IPCMemoryHandle.open(other)


def test_freed_memory(fresh, sent, memory_class):
    memory = filled(memory_class)
    raw = memory.ipc_handle().to_bytes()
    opened = zm.IPCMemoryHandle.open(raw)
    memory.close()
    told = f"freed by its owner, process {os.getpid()}"
    with pytest.raises(zm.IPCError, match=told):
        zm.IPCMemoryHandle.open(raw)
    assert told in fresh(ANSWER, sent(raw)).stdout
    # Memory that was opened before stays mapped.
    assert opened.tobytes() == PATTERN


def test_an_exporter_that_is_gone(fresh):
    made = fresh(
        """
        import os, zeusm.memory as zm
        memory = zm.MemoryUSMHost(64)
        print(os.getpid(), zm.IPCMemoryHandle(memory).to_bytes().hex())
        """
    )
    process, raw = made.stdout.split()
    with pytest.raises(zm.IPCError, match=f"process {process}.* is gone"):
        zm.IPCMemoryHandle.open(bytes.fromhex(raw))


def test_another_machine(memory_class):
    raw = filled(memory_class).ipc_handle().to_bytes()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with pytest.raises(zm.IPCError, match=f"another machine.*01010101-.*{boot}"):
        zm.IPCMemoryHandle.open(edited(raw, 16, b"\1" * 16))


def test_an_exporter_that_is_gone_and_has_left_a_child():
    """The child has a copy of the socket at which the exporter's thread was listening."""
    program = """if True:
        import os, sys, zeusm.memory as zm
        memory = zm.MemoryUSMDevice(4096)
        print(bytes(memory.ipc_handle()).hex(), flush=True)
        if os.fork() == 0:
            os.close(1)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as exporter:
        handle = bytes.fromhex(exporter.stdout.readline())
        exporter.kill()
        exporter.wait()
        begin = time.monotonic()
        with pytest.raises(zm.IPCError, match="gone|exited|ended"):
            zm.IPCMemoryHandle.open(handle)
        assert time.monotonic() - begin < 30


def test_another_device(memory_class):
    memory = filled(memory_class)
    raw = memory.ipc_handle().to_bytes()
    with pytest.raises(zm.IPCError, match="device 02020202-"):
        zm.IPCMemoryHandle.open(edited(raw, 32, b"\2" * 16), memory.sycl_device)


def test_what_is_no_handle():
    unpickle, (raw,) = filled(zm.MemoryUSMHost).ipc_handle().__reduce__()
    damaged = bytearray(raw)
    damaged[100] ^= 1
    wrong = {
        "too few": raw[:10],
        f"a handle has {len(raw)}": raw[:-1],
        "something else": b"anything" * 27,
        "damaged": damaged,
        "version 7": edited(raw, 8, struct.pack("<I", 7)),
    }
    for reason, content in wrong.items():
        for read in (zm.IPCMemoryHandle.from_bytes, zm.IPCMemoryHandle.open, unpickle):
            with pytest.raises(zm.IPCError, match=reason):
                read(content)
    for content in ["text", 5, None]:
        with pytest.raises(TypeError):
            zm.IPCMemoryHandle.open(content)


def test_a_child_exports_what_it_inherited_as_its_own(fresh, usm_type):
    """The parent serves requests with its own token, so the child exports with another one."""
    fresh(f"""
    import os, subprocess, sys
    import zeusm.memory as zm

    def token(handle):
        return bytes(handle)[52:68]

    memory = zm.MemoryUSM{usm_type.title()}(4096)
    memory.memset(5)
    parents = memory.ipc_handle()
    get, put = os.pipe()
    child = os.fork()
    if child == 0:
        memory.memset(6)
        own = memory.ipc_handle()
        assert own.pid == os.getpid()
        assert token(own) != token(parents)
        program = "import sys, zeusm.memory as zm; raw = bytes.fromhex(sys.argv[1]); "
        program += "print(set(zm.IPCMemoryHandle.open(raw).tobytes()))"
        told = subprocess.run([sys.executable, "-c", program, bytes(own).hex()], capture_output=True, text=True)
        assert told.stdout.strip() in ("{{5}}", "{{6}}"), told
        raw = bytes(own)
        del memory, own, parents
        try:
            zm.IPCMemoryHandle.open(raw)
        except zm.IPCError as error:
            assert "freed" in str(error), error
        else:
            os._exit(2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with zm.IPCMemoryHandle.open(parents) as opened:
        opened.tobytes()
    assert bytes(memory.ipc_handle()) == bytes(parents)
    """)


def test_a_mapping_that_the_system_refuses(fresh):
    fresh("""
        import resource
        import zeusm.memory as zm

        memory = zm.MemoryUSMDevice(64 << 20)
        memory.memset(1)
        handle = memory.ipc_handle()
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        unlimited = resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), unlimited))
        try:
            zm.IPCMemoryHandle.open(handle)
        except zm.IPCError as error:
            told = str(error)
        resource.setrlimit(resource.RLIMIT_AS, (unlimited, unlimited))
        assert "OUT_OF_HOST_MEMORY" in told, told
        assert zm.IPCMemoryHandle.open(handle).tobytes() == memory.tobytes()
    """)
