"""IPC behaviour in which Intel's driver differs from the CPU runtime, simulated by an interposed library."""

import pytest
import zeusm.memory as zm

pytestmark = pytest.mark.once

# The functions call the CPU runtime, which closes no descriptor and opens memory with the kind of the export.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

typedef struct { char data[64]; } handle;
typedef struct { int stype; void *next; int type; uint64_t id, page; } properties;

/* Whether opening a handle closes its descriptor, and whether another thread then reuses the number. */
int closes, reused, number;
/* Whether opened memory is reported as device memory, and its address. */
int is_devices;
static void *opened;

static void *behind(const char *name) { return dlsym(RTLD_NEXT, name); }

int zeMemOpenIpcHandle(void *context, void *device, handle it, uint32_t flags, void **pointer)
{
    int answer = ((int (*)(void *, void *, handle, uint32_t, void **))behind("zeMemOpenIpcHandle"))(
        context, device, it, flags, pointer);
    opened = *pointer;
    memcpy(&number, it.data, sizeof number);
    if (closes)
        close(number);
    if (reused) {
        int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (other != number) {
            dup3(other, number, O_CLOEXEC);
            close(other);
        }
    }
    return answer;
}

int zeMemGetAllocProperties(void *context, void *pointer, properties *told, void **device)
{
    int answer = ((int (*)(void *, void *, properties *, void **))behind("zeMemGetAllocProperties"))(
        context, pointer, told, device);
    if (is_devices && answer == 0 && pointer == opened)
        told->type = 2; /* ZE_MEMORY_TYPE_DEVICE */
    return answer;
}
"""
START = """
import ctypes, os, sys, zeusm.memory as zm
library = ctypes.CDLL(os.environ["ZEUSM_RUNTIME"])
closes, reused, number, is_devices = (
    ctypes.c_int.in_dll(library, name) for name in ("closes", "reused", "number", "is_devices")
)
"""


@pytest.fixture(scope="module")
def library(stand_in):
    return stand_in(SOURCE)


@pytest.fixture
def run(fresh, library):
    return lambda program: fresh(START + program, env={"ZEUSM_RUNTIME": str(library)})


@pytest.mark.parametrize("own", [True, False], ids=["of this process", "of another process"])
def test_a_descriptor_is_closed_once(run, usm_type, own):
    """The driver or zeusm closes it; zeusm does not close a number that is reused for another file."""
    run(f"""
import subprocess

EXPORT = '''
import sys, zeusm.memory as zm
memory = zm.MemoryUSM{usm_type.title()}(300_000)
memory.memset(9)
print(memory.ipc_handle().to_bytes().hex(), flush=True)
sys.stdin.read()
'''
if {own}:
    memory = zm.MemoryUSM{usm_type.title()}(300_000)
    memory.memset(9)
    raw = memory.ipc_handle().to_bytes()
else:
    other = subprocess.Popen(
        [sys.executable, "-c", EXPORT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    raw = bytes.fromhex(other.stdout.readline())


def descriptors():
    return {{name: os.readlink(f"/proc/self/fd/{{name}}") for name in map(int, os.listdir("/proc/self/fd"))
            if os.path.exists(f"/proc/self/fd/{{name}}")}}


zm.IPCMemoryHandle.open(raw).close()
before = descriptors()
for driver in [(0, 0), (1, 0), (1, 1)]:
    closes.value, reused.value = driver
    opened = zm.IPCMemoryHandle.open(raw)
    assert opened.tobytes() == bytes([9]) * 300_000
    if reused.value:
        assert os.readlink(f"/proc/self/fd/{{number.value}}") == "/dev/null"
        os.close(number.value)
    assert number.value not in before
    assert descriptors() == before, (driver, before, descriptors())
    opened.close()
    assert descriptors() == before
if not {own}:
    other.communicate()
""")


def test_shared_memory_that_is_opened_as_device_memory(run):
    """It has the kind that the driver reports, and an access by the host raises an error with the reason."""
    run("""
import numpy as np
import zeusm

memory = zm.MemoryUSMShared(300_000)
memory.memset(9)
is_devices.value = 1
opened = zm.IPCMemoryHandle.open(memory.ipc_handle())
assert type(opened) is zm.MemoryIPCDevice and isinstance(opened, zm.MemoryUSMDevice)
assert (opened.get_usm_type(), opened.exported_usm_type) == ("device", "shared")
assert opened.tobytes() == bytes([9]) * 300_000
opened.memset(8)
assert memory.tobytes() == bytes([8]) * 300_000
for it in opened, opened[10:20]:
    for look in memoryview, lambda it: memoryview(it.view("u1")):
        try:
            look(it)
        except (TypeError, BufferError) as error:
            told = str(error)
            assert "cannot be accessed by the host" in told, told
            assert "USM-shared" in told and "the driver opens as USM-device" in told, told
        else:
            raise AssertionError("the host accessed device memory")
""")


def test_shared_memory_that_migrates_is_refused(fresh):
    """Another process would have the device's bytes, and not those that the host has written since."""
    fresh(
        """
        import zeusm.memory as zm

        memory = zm.MemoryUSMShared(64)
        for share in memory.ipc_handle, memory[8:].ipc_handle:
            try:
                share()
            except zm.IPCError as error:
                assert "migrates" in str(error) and "device or host memory" in str(error), error
            else:
                raise AssertionError("exported")
        for memory in zm.MemoryUSMHost(64), zm.MemoryUSMDevice(64):
            memory.ipc_handle()
        """,
        env={"ZEUSM_CPU_DISCRETE": "1", "ZEUSM_RUNTIME": "cpu"},
    )


@pytest.mark.parametrize("allocate", [zm.MemoryUSMDevice, zm.MemoryUSMHost])
@pytest.mark.parametrize("pool", [None, False])
def test_many_allocations_opened_at_once(allocate, pool):
    """The handles are told apart: a driver may put several allocations into one file, with one id."""
    memories = [allocate(size, pool=pool) for size in (10, 100, 1000, 5000, 70000) for _ in "ab"]
    for value, memory in enumerate(memories, 1):
        memory.memset(value)
    opened = [zm.IPCMemoryHandle.open(memory.ipc_handle()) for memory in memories]
    for value, (memory, other) in enumerate(zip(memories, opened, strict=True), 1):
        assert other.tobytes() == bytes([value]) * memory.nbytes


@pytest.mark.parametrize("allocate", [zm.MemoryUSMDevice, zm.MemoryUSMHost])
def test_the_end_of_a_neighbour_of_exported_memory(allocate):
    """The export stays open: a driver may close the descriptor that it gave when it frees memory of the same file."""
    memory, *neighbours = [allocate(1000, pool=False) for _ in range(4)]
    memory.memset(7)
    handle = memory.ipc_handle()
    neighbours[0].ipc_handle()
    neighbours.clear()
    with zm.IPCMemoryHandle.open(bytes(handle)) as opened:
        assert opened.tobytes() == bytes([7]) * 1000
