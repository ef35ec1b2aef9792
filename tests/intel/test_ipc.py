"""Memory that is opened from a handle, where Intel's driver leaves the behaviour to its callers."""

import subprocess
import textwrap

import pytest
from on_the_simulator import MACHINE, MOVING

# Counts the calls of `close` for numbers that are no descriptors: in a program with threads, such a number may be another
# thread's file.
COUNTED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

int closed_twice;

int close(int number)
{
    static int (*next)(int);
    if (next == 0)
        next = (int (*)(int))dlsym(RTLD_NEXT, "close");
    int answer = next(number);
    if (answer != 0 && errno == EBADF)
        __atomic_add_fetch(&closed_twice, 1, __ATOMIC_RELAXED);
    return answer;
}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counted")
    (folder / "counted.c").write_text(COUNTED)
    library = folder / "libcounted.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, folder / "counted.c"], check=True, timeout=120
    )
    return library


# `exporter(source)` starts another process, which sends the handles in its list `handles` and keeps their memory.
EXPORTER = """
import subprocess
import sys

import dpctl
import zeusm.memory as zm

def exporter(source):
    source += "\\nprint(*(bytes(handle).hex() for handle in handles), flush=True)\\nsys.stdin.read()"
    source = "import sys, dpctl, zeusm.memory as zm\\n" + source
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", source], **pipes)
    return process, [bytes.fromhex(text) for text in process.stdout.readline().split()]
"""


@pytest.fixture
def importer(program):
    """Runs a program that can start an exporter."""
    return lambda code, **variables: program(EXPORTER + textwrap.dedent(code), **variables)


@pytest.mark.parametrize("kind", ["Device", "Host"])
def test_a_descriptor_is_closed_once(importer, counted, kind):
    """The driver closes the descriptor of host memory itself."""
    out = importer(
        f"""
        import ctypes
        import os

        counter = ctypes.c_int.in_dll(ctypes.CDLL(None), "closed_twice")
        process, (handle,) = exporter(
            "memory = zm.MemoryUSM{kind}(1 << 20, pool=False)\\n"
            "memory.memset(3)\\n"
            "handles = [memory.ipc_handle()]"
        )

        def round():
            with zm.IPCMemoryHandle.open(handle) as opened:
                assert opened.tobytes() == bytes([3]) * (1 << 20)
            return len(os.listdir("/proc/self/fd"))

        before = round()
        counter.value = 0
        print(all(round() == before for _ in range(3)), counter.value)
        process.stdin.close()
        assert process.wait() == 0
        """,
        LD_PRELOAD=str(counted),
    )
    assert out.split() == ["True", "0"]


@pytest.mark.skipif(MACHINE in MOVING, reason="shared memory that migrates is not exported")
def test_shared_memory_is_opened_as_device_memory(program):
    """The host has no access to it; `exported_usm_type` is the kind of the exporting process."""
    out = program(
        """
        import zeusm.memory as zm

        memory = zm.MemoryUSMShared(4096)
        memory.memset(3)
        with zm.IPCMemoryHandle.open(memory.ipc_handle()) as opened:
            print(type(opened).__name__, opened.get_usm_type(), opened.exported_usm_type)
            try:
                memoryview(opened)
            except TypeError as error:
                print("opens as USM-device memory" in str(error))
            print(opened.tobytes() == bytes([3]) * 4096)
        """
    )
    assert out.splitlines() == ["MemoryIPCDevice device shared", "True", "True"]


@pytest.mark.skipif(MACHINE != "bmg2", reason="there is only one device")
@pytest.mark.parametrize("kind", ["Device", "Host"])
def test_memory_of_the_same_process_is_not_opened_with_several_gpus(program, kind):
    """The driver would close the buffer of the memory together with the mapping: a later export of it fails, or is one of
    another buffer that got the number.
    """
    out = program(
        f"""
        import dpctl
        import zeusm.memory as zm

        kept = []
        for number in range(16):
            device = dpctl.get_devices(backend="level_zero")[number % 2]
            queue = dpctl.SyclQueue(device)
            memory = zm.MemoryUSM{kind}(4096, queue=queue, pool=False)
            memory.memset(number)
            kept.append(memory)
            try:
                zm.IPCMemoryHandle.open(bytes(memory.ipc_handle()), device).close()
                print("opened")
            except zm.IPCError as error:
                assert "memory of this process" in str(error), error
            copy = zm.MemoryUSMDevice(4096, queue=queue)
            copy.copy_from_device(memory)
            assert copy.tobytes() == bytes([number]) * 4096
        """
    )
    assert out == ""


def test_one_of_several_mappings_of_memory_is_closed(importer):
    """The others stay usable. With several GPUs, the driver would close the buffer under them."""
    importer(
        """
        SIZE = 1 << 16
        process, handles = exporter(
            "devices = dpctl.get_devices(backend='level_zero')\\n"
            "queues = [dpctl.SyclQueue(devices[number % len(devices)]) for number in range(16)]\\n"
            "kept = [zm.MemoryUSMDevice(1 << 16, queue=queue, pool=False) for queue in queues]\\n"
            "for number, memory in enumerate(kept): memory.memset(number)\\n"
            "handles = [memory.ipc_handle() for memory in kept]"
        )
        devices = dpctl.get_devices(backend="level_zero")
        contexts = [dpctl.SyclContext([device]) for device in devices]
        opened = []
        for number, handle in enumerate(handles):
            device = devices[number % len(devices)]
            opened.append(zm.IPCMemoryHandle.open(handle, dpctl.SyclQueue(device)))
        for number, (handle, first) in enumerate(zip(handles, opened)):
            context = contexts[number % len(devices)]
            queue = dpctl.SyclQueue(context, context.get_devices()[0])
            for _ in range(3):
                zm.IPCMemoryHandle.open(handle, queue).close()
            assert first.tobytes() == bytes([number]) * SIZE
        process.stdin.close()
        assert process.wait() == 0
        """
    )


@pytest.mark.parametrize("kind", ["Device", "Host"])
def test_threads_open_and_close_at_once(importer, counted, kind):
    """The driver's table of shared buffers is not safe against that, and the driver closes descriptors that another thread
    may get at once.
    """
    out = importer(
        f"""
        import ctypes
        import threading

        counter = ctypes.c_int.in_dll(ctypes.CDLL(None), "closed_twice")
        process, handles = exporter(
            "kept = [zm.MemoryUSM{kind}(size, pool=False) for size in [4096] * 3 + [4 << 20] * 3]\\n"
            "for number, memory in enumerate(kept): memory.memset(number)\\n"
            "handles = [memory.ipc_handle() for memory in kept]"
        )
        zm.IPCMemoryHandle.open(handles[0]).close()
        counter.value = 0
        done = []

        def work(number):
            for _ in range(500):
                with zm.IPCMemoryHandle.open(handles[number]) as opened:
                    assert opened[:4096].tobytes() == bytes([number]) * 4096
            done.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(handles))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(sorted(done), counter.value)
        process.stdin.close()
        assert process.wait() == 0
        """,
        LD_PRELOAD=str(counted),
    )
    assert out.split("] ") == ["[0, 1, 2, 3, 4, 5", "0\n"]
