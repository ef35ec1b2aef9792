"""Drivers that fail or are slow, simulated by a library that is interposed between the runtime and its callers."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
import zeusm

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The result of copies and fills, if not 0; the duration of a submission; a counter that another thread increments, and
   by how much it grew during a submission. */
int shim_answer;
/* Whether the device is lost, which each wait then returns; with 2, its status says so, too. */
int shim_lost;
int shim_milliseconds;
volatile int shim_counted;
int shim_meanwhile;
/* How many waits for an event fail before one succeeds. */
int shim_refusals;

typedef int copy(void *, void *, const void *, size_t, void *, uint32_t, void **);
typedef int fill(void *, void *, const void *, size_t, size_t, void *, uint32_t, void **);

static int submit(void)
{
    int before = shim_counted;
    usleep(1000 * shim_milliseconds);
    shim_meanwhile = shim_counted - before;
    return shim_answer;
}

static void *behind(const char *name) { return dlsym(RTLD_NEXT, name); }

int zeCommandListAppendMemoryCopy(void *list, void *to, const void *from, size_t size, void *signal,
                                  uint32_t count, void **waits)
{
    int answer = submit();
    if (answer != 0)
        return answer;
    return ((copy *)behind("zeCommandListAppendMemoryCopy"))(list, to, from, size, signal, count, waits);
}

int zeCommandListAppendMemoryFill(void *list, void *to, const void *pattern, size_t width, size_t size,
                                  void *signal, uint32_t count, void **waits)
{
    int answer = submit();
    if (answer != 0)
        return answer;
    return ((fill *)behind("zeCommandListAppendMemoryFill"))(list, to, pattern, width, size, signal, count, waits);
}

int zeDeviceGetProperties(void *device, char *properties)
{
    int answer = ((int (*)(void *, void *))behind("zeDeviceGetProperties"))(device, properties);
    const char *name = getenv("SHIM_DEVICE_NAME");
    if (answer == 0 && name != NULL)
        strncpy(properties + 112, name, 255);
    return answer;
}

/* Aborts for sizes beyond any memory, as a driver that does not check them. */
#define ALLOCATING(name, parameters, ...)                                                      \
    int name parameters                                                                        \
    {                                                                                          \
        if (size >= (size_t)1 << 44)                                                           \
            abort();                                                                           \
        return ((int(*) parameters)behind(#name))(__VA_ARGS__);                                \
    }
ALLOCATING(zeMemAllocHost, (void *context, void *how, size_t size, size_t alignment, void **pointer), context, how,
           size, alignment, pointer)
ALLOCATING(zeMemAllocDevice,
           (void *context, void *how, size_t size, size_t alignment, void *device, void **pointer), context, how,
           size, alignment, device, pointer)
ALLOCATING(zeMemAllocShared,
           (void *context, void *how, void *host, size_t size, size_t alignment, void *device, void **pointer),
           context, how, host, size, alignment, device, pointer)

#define LOST 0x70000001
#define WAITING(name, object)                                                                  \
    int name(void *object, uint64_t limit)                                                     \
    {                                                                                          \
        return shim_lost ? LOST : ((int (*)(void *, uint64_t))behind(#name))(object, limit);   \
    }
#define OUT_OF_HOST_MEMORY 0x70000002
int zeEventHostSynchronize(void *event, uint64_t limit)
{
    if (shim_refusals > 0) {
        shim_refusals--;
        return OUT_OF_HOST_MEMORY;
    }
    return shim_lost ? LOST : ((int (*)(void *, uint64_t))behind("zeEventHostSynchronize"))(event, limit);
}

int zeDeviceGetStatus(void *device)
{
    return shim_lost == 2 ? LOST : ((int (*)(void *))behind("zeDeviceGetStatus"))(device);
}
WAITING(zeCommandQueueSynchronize, queue)
WAITING(zeCommandListHostSynchronize, list)
WAITING(zeFenceHostSynchronize, fence)

#define TABLE(name, ...)                                                                       \
    int name(int version, void **table)                                                        \
    {                                                                                          \
        int answer = ((int (*)(int, void **))behind(#name))(version, table);                   \
        if (answer == 0) {                                                                     \
            __VA_ARGS__;                                                                       \
        }                                                                                      \
        return answer;                                                                         \
    }
TABLE(zeGetEventProcAddrTable, table[3] = zeEventHostSynchronize)
TABLE(zeGetCommandQueueProcAddrTable, table[3] = zeCommandQueueSynchronize)
TABLE(zeGetFenceProcAddrTable, table[2] = zeFenceHostSynchronize)

/* SYCL gets the functions from a table. */
TABLE(zeGetCommandListProcAddrTable, table[8] = zeCommandListAppendMemoryCopy,
      table[9] = zeCommandListAppendMemoryFill,
      version >= 0x10006 ? table[28] = zeCommandListHostSynchronize : 0)
"""
# zeusm keeps the GIL during smaller operations, and performs them on the host where the memory is host-accessible.
SIZE = 1 << 20
NAME, BEHIND = b"libze_loader.so.1", b"libze_behind.so.1"


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """The library under the loader's name; it links the CPU runtime under another name."""
    folder = tmp_path_factory.mktemp("shim")
    runtime = Path(zeusm.__file__).parent / "lib" / NAME.decode()
    (folder / BEHIND.decode()).write_bytes(runtime.read_bytes().replace(NAME, BEHIND))
    (folder / "shim.c").write_text(SOURCE)
    options = [f"-Wl,-soname,{NAME.decode()}", f"-Wl,-rpath,{folder}", "-Wl,--no-as-needed"]
    compiler = [*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-Wall", "-Werror"]
    library = folder / NAME.decode()
    sources = [folder / "shim.c", folder / BEHIND.decode()]
    subprocess.run([*compiler, *options, *sources, "-o", library], check=True)
    return library


@pytest.fixture
def run(fresh, shim):
    """Runs a program with the library as `shim` and both packages imported."""

    def run(program, env=None):
        start = f"""
import ctypes, sys, threading, time
import zeusm, zeusm.memory, dpctl.memory

shim = ctypes.CDLL({str(shim)!r})


answer, lost, milliseconds, counted, meanwhile, refusals = (
    ctypes.c_int.in_dll(shim, f"shim_{{name}}")
    for name in ("answer", "lost", "milliseconds", "counted", "meanwhile", "refusals")
)

"""
        return fresh(start + program, env={"ZEUSM_RUNTIME": str(shim)} | (env or {}))

    return run


@pytest.mark.parametrize(
    ("usm_type", "size"), [("device", 4096), ("device", SIZE), ("shared", SIZE), ("host", SIZE)]
)
def test_a_failed_copy_raises(run, usm_type, size):
    """dpctl drops the errors of all copies, and reports those of memset only."""
    run(f"""
def calls(package):
    x, y = (package.MemoryUSM{usm_type.title()}({size}) for _ in range(2))
    x.memset(3)
    y.memset(4)
    host = bytearray(b"\\xff" * {size})
    yield lambda: x.copy_to_host(host), lambda: bytes(host), b"\\xff"
    yield lambda: x.copy_from_host(b"\\1" * {size}), x.tobytes, b"\\3"
    yield lambda: x.copy_from_device(y), x.tobytes, b"\\3"
    if package is zeusm.memory:
        yield lambda: x.memset(5), x.tobytes, b"\\3"
        yield lambda: x.copy_to_host_async(host), lambda: bytes(host), b"\\xff"
        yield lambda: x.copy_from_host_async(host), x.tobytes, b"\\3"
        yield lambda: x.copy_from_device_async(y), x.tobytes, b"\\3"
        yield lambda: x.memset_async(5), x.tobytes, b"\\3"
        yield lambda: type(x)(y, copy=True), x.tobytes, b"\\3"


for package in dpctl.memory, zeusm.memory:
    for call, content, untouched in calls(package):
        answer.value = 0x70000003
        told = None
        try:
            call()
        except zeusm.LevelZeroError as error:
            told = str(error)
        answer.value = 0
        assert content() == untouched * {size}
        assert (told is None) == (package is dpctl.memory), (package, told)
        if told is not None:
            for part in "{size}", zeusm.runtime().device_names[0], "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY":
                assert part in told, (part, told)
            assert "copy" in told or "fill" in told, told
""")


def test_the_gil_is_free_while_work_is_submitted(run, usm_type):
    """Another Python thread runs during zeusm's submissions. dpctl holds the GIL during its own."""
    run(f"""
def count():
    while True:
        counted.value += 1
        time.sleep(0.001)


def calls(package):
    x, y = (package.MemoryUSM{usm_type.title()}({SIZE}) for _ in range(2))
    host = bytearray({SIZE})
    yield lambda: x.memset(1)
    yield lambda: x.copy_to_host(host)
    yield lambda: x.copy_from_host(host)
    yield lambda: x.copy_from_device(y)
    if package is zeusm.memory:
        yield lambda: x.memset_async(1).wait()
        yield lambda: x.copy_to_host_async(host).wait()
        yield lambda: x.copy_from_host_async(host).wait()
        yield lambda: x.copy_from_device_async(y).wait()
        yield x.tobytes
        yield lambda: type(x)(y, copy=True)


sys.setswitchinterval(100)  # Threads switch only when the GIL is released.
threading.Thread(target=count, daemon=True).start()
for package in dpctl.memory, zeusm.memory:
    for turn, call in enumerate(calls(package)):
        milliseconds.value, meanwhile.value = 100, -1
        call()
        milliseconds.value = 0
        assert meanwhile.value >= 0, "nothing was submitted"
        assert (meanwhile.value > 0) == (package is zeusm.memory), (package, turn, meanwhile)
""")


@pytest.mark.parametrize("times", [1, 50])
def test_a_wait_that_fails_ends_after_the_work(run, times):
    """The host buffer belongs to the caller after the exception, so the copy must have completed."""
    run(f"""
size = 64 << 20
memory = zeusm.memory.MemoryUSMDevice(size)
memory.memset(3)
host = bytearray(size)
before = zeusm.memory.MemoryUSMDevice(256 << 20)
for value in range(6):
    before.memset_async(value)  # Delays the copy.
refusals.value = {times}
try:
    memory.copy_to_host(host)
except zeusm.LevelZeroError as error:
    written = bytes(host)
    assert "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY" in str(error), error
    assert "copy" in str(error), error
    assert written == b"\\3" * size
else:
    raise AssertionError("the wait did not fail")
refusals.value = 0
memory.memset(4)
assert memory.tobytes() == b"\\4" * size
""")


@pytest.mark.parametrize(
    "look", ["memoryview", "bytes", "zeusm.memory.MemoryUSMShared.copy_to_host", "np.asarray"]
)
@pytest.mark.parametrize("adapter", ["0", "1"])
def test_a_device_lost_under_sycls_work_is_an_error(run, look, adapter):
    """SYCL throws while zeusm waits for its queue, which must not terminate the process. Its first adapter keeps the lock of a
    queue whose wait has failed: zeusm does not wait for it again (NumPy asks twice), and the process ends without SYCL.
    """
    run(
        f"""
import os

import numpy as np

look = {look}
memory = zeusm.memory.MemoryUSMShared(1 << 20)
queue = dpctl.SyclQueue(memory.sycl_context, memory.sycl_device)
memory = zeusm.memory.MemoryUSMShared(1 << 20, queue=queue)
large, source = (dpctl.memory.MemoryUSMShared(1 << 28, queue=queue) for _ in range(2))
dpctl.memory.as_usm_memory(memory)  # An export makes zeusm wait for SYCL's queue.
event = queue.memcpy_async(large, source, 1 << 28)
lost.value = 2 if look is np.asarray else 1
try:
    seen = look(memory)
except RuntimeError as error:
    assert "LOST" in str(error) or "NOT_AVAILABLE" in str(error), error
else:
    # NumPy ignores errors of the buffer protocol, and makes an array of the object itself.
    assert look is np.asarray and seen.dtype == object, look
os._exit(0)
""",
        {"SYCL_UR_USE_LEVEL_ZERO_V2": adapter},
    )


@pytest.mark.parametrize("pool", ["1", "0"])
def test_pointers_that_a_driver_knows_in_all_its_contexts(run, usm_type, pool):
    """Intel's driver does, and the CPU runtime; zeusm records the context of its own allocations."""
    run(
        f"""
class Claim:
    def __init__(self, memory, context):
        self.memory = memory
        self.__sycl_usm_array_interface__ = dict(memory.__sycl_usm_array_interface__, syclobj=context)


device = dpctl.SyclDevice("level_zero")
here, there = (dpctl.SyclContext([device]) for _ in range(2))
queues = [dpctl.SyclQueue(context, device) for context in (here, there)]
for size in 64, 1 << 24:
    x = zeusm.memory.MemoryUSM{usm_type.title()}(size, queue=queues[0])
    x.memset(7)
    assert zeusm.memory.as_usm_memory(Claim(x, here))._pointer == x._pointer
    dpctl.memory.as_usm_memory(Claim(x, there))  # The driver accepts it.
    for take in zeusm.memory.as_usm_memory, zeusm.asarray:
        try:
            take(Claim(x, there))
        except ValueError as error:
            assert hex(x._pointer) in str(error) and "context" in str(error), error
        else:
            raise AssertionError("memory of another context was accepted")
    assert x.get_usm_type(there) == "unknown"
    assert x.get_usm_type(here) == {usm_type!r}
    array = zeusm.asarray(x, queue=queues[0])
    copy = zeusm.asarray(array, queue=queues[1])
    assert copy.sycl_context == there
    x.memset(8)
    assert copy.copy_to_host().tobytes() == bytes([7]) * size
""",
        env={"ZEUSM_POOL": pool, "ZEUSM_CPU_DEVICES": "2"},
    )


@pytest.mark.parametrize("pool", ["1", "0"])
def test_sizes_that_a_driver_does_not_check(run, usm_type, pool):
    """Intel's driver aborts for such sizes of host memory, so zeusm rejects sizes beyond the memory without a call."""
    run(
        f"""
for size in 1 << 44, 1 << 46, 1 << 62, sys.maxsize:
    try:
        zeusm.memory.MemoryUSM{usm_type.title()}(size)
    except zeusm.memory.USMAllocationError as error:
        assert str(size) in str(error) and "more than the memory" in str(error), error
    else:
        raise AssertionError("a size beyond the memory was allocated")
""",
        env={"ZEUSM_POOL": pool},
    )


def test_a_driver_that_does_not_survive_a_fork_is_not_called_in_the_child(run, usm_type):
    """Each call raises there, for new and inherited objects; releasing inherited objects does not."""
    run(
        f"""
import os, signal, traceback
zm = zeusm.memory
memory, host = zm.MemoryUSM{usm_type.title()}(1 << 20), bytearray(1 << 20)
memory.memset(3)
event = memory.memset_async(4)

def refused(call):
    try:
        call()
    except (zeusm.LevelZeroError, zm.USMAllocationError) as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError(call)

def check():
    global memory, event
    refused(lambda: zm.MemoryUSM{usm_type.title()}(64 << 20))
    refused(lambda: memory.copy_to_host(host))
    refused(lambda: memory.memset_async(5))
    assert event.wait()
    del memory, event

child = os.fork()
if child == 0:
    signal.alarm(60)
    try:
        check()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert event.wait() and memory.tobytes() == b"\\4" * (1 << 20)
""",
        env={"SHIM_DEVICE_NAME": "Intel(R) Arc(TM)"},
    )
