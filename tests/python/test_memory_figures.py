"""Failures while a history is recorded, free memory of devices, and `tracemalloc`."""

import sys

import pytest
import zeusm
import zeusm.memory as zm
from conftest import CLASSES
from snapshots import rows

MIB = 1 << 20


def test_a_failure_names_those_who_hold_the_most(usm_type):
    memory_class = CLASSES[usm_type]

    def hoarder():
        return [memory_class(MIB) for _ in range(5)]

    def second():
        return memory_class(2 * MIB)

    with pytest.raises(zm.USMAllocationError) as without:
        memory_class(1 << 60)
    assert "held by" not in str(without.value)
    pool = zm.get_pool(usm_type)
    with zm.record_history() as history:
        kept = hoarder(), second(), [memory_class(10), memory_class(20), memory_class(30)]
        with pytest.raises(zm.USMAllocationError) as failure:
            memory_class(1 << 60)
        in_use = pool.used_bytes()
    message = str(failure.value)
    hoard = f"hoarder.<locals>.<listcomp> ({__file__}:" if sys.version_info < (3, 12) else "hoarder"
    assert "is held by" in message
    text = message[message.index("is held by") :]
    assert hoard in text
    assert f": 5 MiB ({5 * MIB} bytes) in 5 blocks\n" in text
    assert "second" in text
    assert f": 2 MiB ({2 * MIB} bytes) in 1 blocks\n" in text
    assert text.count("blocks") == 3
    snapshot = history.snapshot()
    (recorded,) = snapshot["failures"]
    event = rows(snapshot, "events")[recorded["event"]]
    assert snapshot["actions"][event["action"]] == "fail"
    assert event["size"] == 1 << 60
    assert snapshot["kinds"][event["kind"]] == usm_type
    assert event["pool"] >= 0
    assert str(1 << 60) in recorded["message"]
    assert recorded["in_use"] >= in_use
    assert recorded["cached"] >= 0
    # On a discrete device, host memory is not the device's.
    assert recorded["free"] > 0 or usm_type == "host"
    del kept


def test_the_limit_of_a_pool_names_who_holds_that_pool():
    """Blocks elsewhere, however large, make no room in it; nor does what the machine has."""

    def elsewhere():
        return zm.MemoryUSMHost(8 * MIB)

    def own():
        return pool.malloc(MIB // 2)

    pool = zm.MemoryPool("host", limit=MIB)
    with zm.record_history():
        kept = elsewhere(), own()
        with pytest.raises(zm.USMAllocationError) as failure:
            pool.malloc(MIB)
    message = str(failure.value)
    assert "own" in message
    assert "in 1 blocks" in message
    assert "elsewhere" not in message
    assert " are free" not in message
    assert message.endswith("free blocks of the pool, or give it a higher limit")
    del kept


def test_what_no_free_makes_room_for_is_not_answered_by_a_free(fresh):
    with pytest.raises(
        zm.USMAllocationError, match="smaller parts, or give the pool a higher limit$"
    ):
        zm.MemoryPool("device", limit=MIB).malloc(2 * MIB)
    told = fresh(
        f"""
        import resource
        import zeusm.memory as zm
        zm.MemoryUSMDevice(1)
        for set_limit in (
            lambda: zm.set_memory_limit(None, {MIB * 100}),
            lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY)),
        ):
            set_limit()
            try:
                zm.MemoryUSMDevice(9 << 30)
            except zm.USMAllocationError as error:
                print(str(error).splitlines()[-1].strip())
            zm.set_memory_limit(None, None)
        """
    ).stdout
    assert told == (
        "work in smaller parts, or choose another limit\nwork in smaller parts, or raise that limit\n"
    )


LIMITED = """
import resource
import zeusm.memory as zm
zm.MemoryUSMHost(1)
name, room = getattr(resource, "%s"), 256 << 20
with open("/proc/self/statm") as file:
    used = int(file.read().split()[%d]) * resource.getpagesize()
resource.setrlimit(name, (used + room, resource.RLIM_INFINITY))
try:
    zm.%s(2 * room)
except zm.USMAllocationError as error:
    print(error)
"""


@pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="a GPU's memory is not the process's")
@pytest.mark.parametrize("memory_class", ["MemoryUSMDevice", "MemoryUSMHost"])
@pytest.mark.parametrize(
    ("limit", "column", "option", "remedy"),
    [
        ("RLIMIT_AS", 0, "ulimit -v", "free memory"),
        ("RLIMIT_DATA", 5, "ulimit -d", "work in smaller parts"),  # The limit is below the size.
    ],
)
def test_the_limit_that_refuses_is_named_with_what_is_free(
    fresh, limit, column, option, remedy, memory_class
):
    told = fresh(LIMITED % (limit, column, memory_class)).stdout
    lines = [line.strip() for line in told.splitlines()]
    (bound,) = [line for line in lines if "are free" in line]
    assert bound.startswith(f"{limit} ({option}) limits"), told
    assert lines[-1] == f"{remedy}, or raise that limit"


REFUSED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
typedef int allocate(void *, void *, size_t, size_t, void *, void **);
int zeMemAllocDevice(void *context, void *desc, size_t size, size_t alignment, void *device, void **pointer)
{
    if (size == 12345)
        return 0x78000004; /* ZE_RESULT_ERROR_INVALID_ARGUMENT */
    return ((allocate *)dlsym(RTLD_NEXT, "zeMemAllocDevice"))(context, desc, size, alignment, device, pointer);
}
"""


def test_an_error_that_is_no_shortage_names_no_limit_to_raise(fresh, stand_in):
    told = fresh(
        """
        import resource
        import zeusm.memory as zm
        resource.setrlimit(resource.RLIMIT_AS, (1 << 45, resource.RLIM_INFINITY))
        try:
            zm.MemoryUSMDevice(12345, pool=False)
        except zm.USMAllocationError as error:
            print(error)
        """,
        env={"ZEUSM_RUNTIME": str(stand_in(REFUSED))},
    ).stdout
    assert told.rstrip().endswith("ZE_RESULT_ERROR_INVALID_ARGUMENT"), told


@pytest.mark.parametrize("discrete", [False, True])
def test_a_failure_counts_the_memory_that_was_short(run_recorded, discrete):
    """A discrete device has memory of its own, beside the host's."""
    run_recorded(
        """
def in_device(): return zm.MemoryUSMDevice(4 << 20, pool=False)
def in_shared(): return zm.MemoryUSMShared(2 << 20, pool=False)
def in_host(): return zm.MemoryUSMHost(8 << 20, pool=False)

in_one_memory = sys.argv[1] == "False"
held = {"in_device": 4 << 20, "in_shared": 2 << 20, "in_host": 8 << 20}
history = zm.record_history()
kept = in_device(), in_shared(), in_host()
for kind, named in [("device", {"in_device", "in_shared"}), ("host", {"in_host"})]:
    try:
        CLASSES[kind](1 << 60, pool=False)
    except zm.USMAllocationError as error:
        message = str(error)
    wanted = set(held) if in_one_memory else named
    assert {name for name in held if f"{name} (" in message} == wanted, message
    failure = history.snapshot()["failures"][-1]
    assert failure["in_use"] == sum(held[name] for name in wanted), failure
    assert (failure["free"] >= 0) == (in_one_memory or kind == "device"), failure
""",
        discrete,
        env={"ZEUSM_CPU_DISCRETE": str(int(discrete))},
    )


def test_tracemalloc_sees_memory_of_the_host(run_recorded):
    run_recorded("""
import tracemalloc

def traced():
    domain = tracemalloc.DomainFilter(True, zm.TRACEMALLOC_DOMAIN)
    snapshot = tracemalloc.take_snapshot().filter_traces([domain])
    return {trace.size: trace.traceback[0].lineno for trace in snapshot.traces}

def lies_on_host(memory):
    # The driver migrates shared memory to a device with memory of its own, and such memory is not exported. No memory is on Windows.
    if not zm.IPCMemoryHandle.is_available():
        return True
    try:
        memory.ipc_handle()
    except zm.IPCError as error:
        assert "migrates" in str(error), error
        return False
    return True

before = zm.MemoryUSMHost(1001)
tracemalloc.start()
line = sys._getframe().f_lineno + 1
host = zm.MemoryUSMHost(2001)
shared, device = zm.MemoryUSMShared(3001), zm.MemoryUSMDevice(4001)
direct = zm.MemoryUSMHost(5001, pool=False)
empty = zm.MemoryUSMHost(0)
of_shared = {3001: line + 1} if lies_on_host(shared) else {}
assert traced() == {2001: line, **of_shared, 5001: line + 2}, traced()
part = host[:10]
del host, before
assert 2001 in traced()
del part
shared.close()
assert list(traced()) == [5001]
# Memory that is freed after the end of the tracing, or in another thread, or was traced before.
thread = threading.Thread(target=direct.close)
thread.start()
thread.join()
assert traced() == {}
late = zm.MemoryUSMHost(6001)
tracemalloc.stop()
del late
tracemalloc.start()
assert traced() == {}
    """)


def test_free_and_total_bytes():
    free, total = zm.mem_get_info()
    assert 0 < free <= total
    for_allocations = zm.snapshot()["devices"][0]["total"]
    if zeusm.runtime().kind == "cpu":
        assert total <= for_allocations
    else:  # Intel's driver offers 95 % of a discrete GPU's memory for allocations.
        assert for_allocations <= total
    assert zm.mem_get_info("level_zero:gpu:0")[1] == total
    with pytest.raises(TypeError):
        zm.mem_get_info(object())
    with pytest.raises(ValueError, match="device"):
        zm.mem_get_info("level_zero:gpu:9")


def test_a_shortage_of_descriptors_is_named(fresh):
    fresh("""
import resource
import zeusm, zeusm.memory as zm

zm.MemoryUSMDevice(64)
expected = zm.mem_get_info()[1]
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
files = []
try:
    while True:
        files.append(open("/dev/null"))
except OSError:
    pass
try:
    raise AssertionError(zm.mem_get_info())
except zeusm.LevelZeroError as error:
    assert "EMFILE" in str(error) and "ulimit -n" in str(error), error
files.clear()
assert zm.mem_get_info()[1] == expected
""")


def test_dpctl_agrees_on_the_free_memory():
    dpctl = pytest.importorskip("dpctl")
    utilities = pytest.importorskip("dpctl.utils")
    device = dpctl.SyclDevice("level_zero:gpu:0")
    if "free_memory" not in utilities.intel_device_info(device):
        pytest.skip("this SYCL runtime does not report free memory")

    def difference():
        found = utilities.intel_device_info(device)["free_memory"]
        free, total = zm.mem_get_info()
        return abs(found / device.global_mem_size - free / total)

    # The total of a discrete GPU is more than the driver offers for allocations. Other programs allocate in between.
    assert min(difference() for _ in range(5)) < 0.1


def test_tiles_have_the_memory_of_their_device(run_recorded):
    run_recorded(
        """
import zeusm
zeusm.set_cpu_devices(2, tiles=2)
import dpctl
device = dpctl.SyclDevice("level_zero:gpu:1")
tile = device.create_sub_devices(partition="next_partitionable")[1]
assert zm.mem_get_info(tile)[1] == zm.mem_get_info(device)[1] > 0
    """,
        env={"ZEUSM_RUNTIME": "cpu"},
    )


def test_a_driver_that_reports_nothing_is_a_typed_error(run_recorded, stand_in):
    library = stand_in("""
#include <stdint.h>
int zesDeviceEnumMemoryModules(void *device, uint32_t *count, void **modules) {
    *count = 0;
    return 0;
}
""")
    run_recorded(
        """
import zeusm
try:
    zm.mem_get_info()
except zeusm.LevelZeroError as error:
    assert "does not report the free memory" in str(error) and "no memory module" in str(error), error
else:
    raise AssertionError("no error")
    """,
        env={"ZEUSM_RUNTIME": str(library)},
    )
