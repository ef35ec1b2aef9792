"""Memory that is opened from a handle, where Intel's driver leaves the behaviour to its callers."""

import subprocess

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


@pytest.mark.parametrize("kind", ["Device", "Host"])
def test_a_descriptor_is_closed_once(program, counted, kind):
    """The driver closes the descriptor of host memory itself."""
    out = program(
        f"""
        import ctypes
        import os
        import zeusm.memory as zm

        counter = ctypes.c_int.in_dll(ctypes.CDLL(None), "closed_twice")
        memory = zm.MemoryUSM{kind}(1 << 20, pool=False)
        memory.memset(3)
        handle = memory.ipc_handle()

        def round():
            with zm.IPCMemoryHandle.open(handle) as opened:
                assert opened.tobytes() == bytes([3]) * (1 << 20)
            return len(os.listdir("/proc/self/fd"))

        before = round()
        counter.value = 0
        print(all(round() == before for _ in range(3)), counter.value)
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
def test_own_host_memory_is_not_opened_on_another_device_than_the_first(program):
    """The driver would close the buffer by which that device has the memory. The kernel may then give its number to another
    buffer, which the device would access instead.
    """
    out = program(
        """
        import dpctl
        import zeusm.memory as zm

        first, last = dpctl.get_devices(backend="level_zero")
        for device in first, last:
            queue = dpctl.SyclQueue(device)
            memory = zm.MemoryUSMHost(4096, queue=queue, pool=False)
            handle = bytes(memory.ipc_handle())
            try:
                zm.IPCMemoryHandle.open(handle, device).close()
                print("opened")
            except zm.IPCError as error:
                print("the driver's first device" in str(error))
            copy = zm.MemoryUSMDevice(4096, queue=queue)
            memory.memset(3)
            copy.copy_from_device(memory)
            assert copy.tobytes() == bytes([3]) * 4096
        """
    )
    assert out.splitlines() == ["opened", "True"]
