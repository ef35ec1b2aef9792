"""Several GPUs of the CPU runtime, their tiles, memory without peer access, and a device of type CPU. Devices last for a process, so all
programs run in processes of their own."""

import re
from pathlib import Path

import pytest

TWO = {"ZEUSM_CPU_DEVICES": "2"}
WITH_CPU = {"ZEUSM_CPU_DEVICES": "1+cpu"}
FOUR = {"ZEUSM_CPU_DEVICES": "4"}
TILES = TWO | {"ZEUSM_CPU_TILES": "2"}
APART = {"ZEUSM_CPU_PEER_ACCESS": "0"}
FLAT = {"ZE_FLAT_DEVICE_HIERARCHY": "FLAT"}
COMBINED = {"ZE_FLAT_DEVICE_HIERARCHY": "COMBINED"}

PRELUDE = """
import warnings
import zeusm
import zeusm.memory as zm
import dpctl
import dpctl.memory as dm
import numpy as np
warnings.simplefilter("ignore")  # dpnp 0.15 raises deprecation warnings of its own.
import dpnp
try:
    from dpnp.tensor import usm_ndarray
except ImportError:
    from dpctl.tensor import usm_ndarray

gpus = dpctl.get_devices(backend="level_zero", device_type="gpu")
NUMBERS = np.arange(1000.0)

def compute(queue):
    '''Runs kernels on memory of zeusm of the queue's device, and returns the memory.'''
    memory = zm.MemoryUSMDevice(NUMBERS.nbytes, queue=queue)
    memory.copy_from_host(NUMBERS)
    array = dpnp.asarray(usm_ndarray(1000, buffer=dm.as_usm_memory(memory)))
    assert array.get_array().usm_data._pointer == memory._pointer
    assert array.sycl_device == queue.sycl_device == memory.sycl_device
    assert array.sycl_context == queue.sycl_context
    x = array * 2 + dpnp.arange(1000.0, sycl_queue=array.sycl_queue)
    assert x.sycl_device == queue.sycl_device
    assert np.array_equal(dpnp.asnumpy(x), 3 * NUMBERS)
    assert abs(float(dpnp.sum(x)) - 3 * NUMBERS.sum()) < 1e-6
    return memory
"""


@pytest.fixture
def several(fresh):
    """Runs a program behind the prelude."""

    def run(program, env, **options):
        return fresh(PRELUDE + re.sub(r"(?m)^        ", "", program), env=env, **options)

    return run


LAYOUTS = {
    "two": (2, TWO),
    "apart": (2, TWO | APART),
    "four tiles, apart": (4, TILES | FLAT | APART),
}


def run_tests(fresh, file, env, *options):
    """Runs the tests of a file in a process with these devices; none may be skipped."""
    test = Path(__file__).with_name(file)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", *options]
    result = fresh.run("-m", "pytest", *options, "--rootdir", test.parents[2], test, env=env)
    assert re.search(r"\d\d+ passed", result.stdout), result.stdout
    assert "skipped" not in result.stdout


@pytest.mark.once
@pytest.mark.parametrize("layout", [*LAYOUTS, "with a CPU"])
def test_the_tests_of_devices_pass_on_several(fresh, layout):
    gpus, variables = LAYOUTS.get(layout, (1, WITH_CPU))
    run_tests(fresh, "test_devices.py", variables | {"ZEUSM_TEST_GPUS": str(gpus)})


@pytest.mark.once
def test_onemkl_computes_on_a_device_of_type_cpu(fresh):
    run_tests(
        fresh,
        "test_onemkl.py",
        WITH_CPU,
        "-k",
        "not refused and not lengths and not child and not fourier",
    )


def test_one_gpu_is_the_only_device_by_default(fresh):
    """What counts devices counts one, SYCL's default context has one, and a CPU is OpenCL's."""
    fresh("""
import zeusm
import dpctl

assert [it.filter_string for it in dpctl.get_devices(backend="level_zero")] == ["level_zero:gpu:0"]
assert len(dpctl.SyclQueue().sycl_context.get_devices()) == 1
assert all(it.backend == dpctl.backend_type.opencl for it in dpctl.get_devices(device_type="cpu"))
assert len(zeusm.runtime().device_names) == 1
""")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_kernels_run_on_each_device_and_in_one_context_of_all(several, layout):
    program = """
        for gpu in gpus:
            compute(dpctl.SyclQueue(gpu))
            compute(dpctl.SyclQueue(dpctl.SyclContext([gpu]), gpu))
        everywhere = dpctl.SyclContext(gpus)
        memories = [compute(dpctl.SyclQueue(everywhere, gpu)) for gpu in gpus]
        for gpu, source in zip(gpus, memories):
            assert zm.get_pool("device", dpctl.SyclQueue(everywhere, gpu)).statistics().used_count == 1
            for target in memories:
                target.memset(0)
                source.copy_from_host(NUMBERS)
                target.copy_from_device(source)
                assert target.tobytes() == NUMBERS.tobytes()
        print(len(gpus))
    """
    gpus, variables = LAYOUTS[layout]
    assert several(program, variables).stdout == f"{gpus}\n"


@pytest.mark.parametrize("variables", [TILES, TILES | APART], ids=["peers", "apart"])
def test_tiles_are_sub_devices_with_memory_and_kernels(several, variables):
    program = """
        import pickle
        memories = []
        for number, gpu in enumerate(gpus):
            tiles = gpu.create_sub_devices(partition="next_partitionable")
            assert [tile.name for tile in tiles] == [
                tile.name for tile in gpu.create_sub_devices(partition="numa")
            ]
            assert len(tiles) == gpu.partition_max_sub_devices == 2
            assert all(tile.parent_device == gpu for tile in tiles)
            assert sum(tile.global_mem_size for tile in tiles) == gpu.global_mem_size
            for tile in tiles:
                contexts = [dpctl.SyclContext([tile]), dpctl.SyclContext(tiles), dpctl.SyclContext([gpu])]
                queues = [dpctl.SyclQueue(tile), *(dpctl.SyclQueue(context, tile) for context in contexts)]
                memories += map(compute, queues)
                memory = memories[-1]
                assert dm.as_usm_memory(memory).sycl_device == tile
                assert zm.as_usm_memory(dm.MemoryUSMShared(8, queue=queues[0])).sycl_device == tile
                with zm.IPCMemoryHandle.open(memory.ipc_handle(), device=tile) as opened:
                    assert opened.sycl_device == tile
                    assert opened.tobytes() == NUMBERS.tobytes()
                # A tile has neither a filter string nor a number of DLPack's.
                assert pickle.loads(pickle.dumps(memory)).sycl_device == gpu
                array = zeusm.asarray(NUMBERS, usm_type="shared", device=tile)
                assert array.sycl_device == tile
                kind, root = array.__dlpack_device__()
                assert dpctl.get_devices()[root] == gpu
        for target in memories:
            for source in memories:
                target.memset(0)
                source.copy_from_host(NUMBERS)
                target.copy_from_device_async(source).wait()
                assert target.tobytes() == NUMBERS.tobytes()
        print(len(memories))
    """
    assert several(program, variables).stdout == "16\n"


@pytest.mark.once
def test_tiles_may_be_listed_in_place_of_their_devices(several):
    program = """
        print([gpu.name.partition(" (")[0] for gpu in gpus])
        for gpu in gpus:
            compute(dpctl.SyclQueue(gpu))
        if hasattr(dpctl, "get_composite_devices"):
            for whole in dpctl.get_composite_devices():
                assert len(whole.component_devices()) == 2
                compute(dpctl.SyclQueue(whole))
                compute(dpctl.SyclQueue(dpctl.SyclContext([whole]), whole))
    """
    names = [f"zeusm CPU runtime {name}" for name in ["0.0", "0.1", "1.0", "1.1"]]
    for hierarchy in [FLAT, COMBINED]:
        assert several(program, TILES | hierarchy).stdout == f"{names}\n"
    masked = several(program, TILES | FLAT | {"ZE_AFFINITY_MASK": "1,2"})
    assert masked.stdout == f"{names[1:3]}\n"


FOREIGN = """
        queues = [dpctl.SyclQueue(gpu) for gpu in gpus]
        class OnOther:
            '''Memory of the second device, given with the queue of the first.'''
            def __init__(self, usm_type):
                self.memory = getattr(zm, f"MemoryUSM{usm_type.title()}")(NUMBERS.nbytes, queue=queues[1])
                self.memory.copy_from_host(NUMBERS)
                self.__sycl_usm_array_interface__ = self.memory.__sycl_usm_array_interface__ | {
                    "syclobj": queues[0]
                }
"""


@pytest.mark.parametrize("variables", [TWO, TWO | APART], ids=["peers", "apart"])
def test_memory_given_with_the_queue_of_another_device_is_copied_on_its_own(several, variables):
    program = (
        FOREIGN
        + """
        for usm_type in ["device", "shared"]:
            other = OnOther(usm_type)
            memory = zm.as_usm_memory(other)
            assert memory._pointer == other.memory._pointer
            # As in dpctl, the given queue is kept. Copies and fills run on the device of the memory.
            assert memory.sycl_device == dm.as_usm_memory(other).sycl_device == gpus[0]
            found = zeusm.pointer_attributes(memory._pointer, queues[0])
            assert found.sycl_device == gpus[1]
            assert memory.tobytes() == NUMBERS.tobytes()
            target = zm.MemoryUSMDevice(memory.nbytes, queue=queues[0])
            target.copy_from_device(other)
            assert target.tobytes() == NUMBERS.tobytes()
            memory.memset(1)
            assert other.memory.tobytes() == bytes([1]) * memory.nbytes
            assert memory.copy_to_host().tobytes() == other.memory.tobytes()
            memory.memset_async(2).wait()
            memory.copy_from_device(target)
            assert other.memory.tobytes() == NUMBERS.tobytes()
        print("done")
    """
    )
    assert several(program, variables).stdout == "done\n"


@pytest.mark.parametrize(
    "variables", [TWO, TWO | APART, TILES | APART], ids=["peers", "apart", "tiles"]
)
def test_arrays_are_copied_between_devices(several, variables):
    """Strided or not, whichever kind of memory is on either side."""
    program = """
        import itertools
        tiles = gpus[0].create_sub_devices(partition="numa") if gpus[0].partition_max_sub_devices else []
        queues = [dpctl.SyclQueue(device) for device in [*gpus, *tiles]]
        kinds = ["device", "shared", "host"]
        for (here, there), (kind, other) in itertools.product(
            itertools.permutations(queues, 2), itertools.product(kinds, kinds)
        ):
            source = zeusm.asarray(np.arange(64, dtype="u1"), usm_type=other, queue=there)
            target = zeusm.asarray(np.zeros(64, "u1"), usm_type=kind, queue=here)
            target[::2] = source[::-2]
            expected = np.zeros(64, "u1")
            expected[::2] = np.arange(64)[::-2]
            assert np.array_equal(target.copy_to_host(), expected)
            target[...] = source
            assert np.array_equal(target.copy_to_host(), np.arange(64))
            for layout in [source, source[::3], source.reshape(8, 8).T]:
                copied = zeusm.asarray(layout, usm_type=kind, queue=here)
                assert copied.sycl_device == here.sycl_device
                assert np.array_equal(copied.copy_to_host(), layout.copy_to_host())
        print("copied")
    """
    assert several(program, variables).stdout == "copied\n"


def test_copies_of_imported_host_memory_are_on_the_device_of_its_queue(several):
    program = """
        for gpu in gpus:
            for kind in ["device", "shared", "host"]:
                array = dpnp.ones(8, usm_type="host", device=gpu)
                copied = zeusm.asarray(array, usm_type=kind, copy=True)
                assert copied.sycl_device == gpu
                if kind != "host":
                    assert zeusm.pointer_attributes(copied._pointer, copied.sycl_context).sycl_device == gpu
                with zm.IPCMemoryHandle.open(copied.base.ipc_handle(), device=gpu) as opened:
                    assert opened.tobytes() == copied.base.tobytes()
        print("imported")
    """
    assert several(program, TWO | APART).stdout == "imported\n"


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
@pytest.mark.parametrize("variables", [TWO, TWO | APART], ids=["peers", "apart"])
def test_a_kernel_on_memory_of_a_peer_needs_access(several, variables, usm_type):
    program = (
        FOREIGN
        + f"""
        memory = dm.as_usm_memory(OnOther("{usm_type}"))
        assert memory.sycl_device == gpus[0]
        x = dpnp.asarray(usm_ndarray(1000, buffer=memory))
        try:
            y = dpnp.negative(x)
            y.sycl_queue.wait()
            assert np.array_equal(dpnp.asnumpy(y), -NUMBERS)
            print("computed")
        except Exception as error:
            print(type(error).__name__, error)
    """
    )
    printed = several(program, variables).stdout
    if variables == TWO or usm_type == "host":
        assert printed == "computed\n"
    else:
        assert "INVALID_ARGUMENT" in printed or "-30" in printed, printed


def test_memory_is_limited_by_the_share_of_a_device(several):
    program = """
        total = gpus[0].global_mem_size
        with open("/proc/meminfo") as file:
            machine = int(file.readline().split()[1]) << 10
        assert total == machine // 4
        def fill(gpu):
            memories = []
            try:
                while True:
                    memories.append(zm.MemoryUSMDevice(total // 5, queue=gpu, pool=None))
            except zm.USMAllocationError as error:
                assert "OUT_OF_DEVICE_MEMORY" in str(error), error
                assert gpu.name in str(error)
            return memories
        first = fill(gpus[0])
        assert len(first) in (4, 5)
        assert zm.MemoryUSMHost(total // 5, pool=None)
        assert len(fill(gpus[1])) == len(first)
        del first
        assert len(fill(gpus[0])) in (4, 5)
        print("done")
    """
    assert several(program, FOUR).stdout == "done\n"


# As Intel's driver: the limit of the first device holds for host memory, whatever device it is for.
FIRST_DEVICES_LIMIT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

struct properties { uint32_t type; void *next; uint32_t others[6]; uint64_t largest; };
struct descriptor { uint32_t type; void *next; };

static void *first;
static const uint64_t limit = 1 << 20;
int refused;

int zeDeviceGet(void *driver, uint32_t *count, void **devices)
{
    int (*real)(void *, uint32_t *, void **) = dlsym(RTLD_NEXT, "zeDeviceGet");
    int result = real(driver, count, devices);
    if (devices && *count)
        first = devices[0];
    return result;
}

int zeDeviceGetProperties(void *device, struct properties *found)
{
    int (*real)(void *, struct properties *) = dlsym(RTLD_NEXT, "zeDeviceGetProperties");
    int result = real(device, found);
    if (device == first)
        found->largest = limit;
    return result;
}

int zeMemAllocHost(void *context, const struct descriptor *asked, size_t size, size_t alignment, void **pointer)
{
    int (*real)(void *, const struct descriptor *, size_t, size_t, void **) = dlsym(RTLD_NEXT, "zeMemAllocHost");
    if (size > limit && !asked->next) {
        refused++;
        return 0x78000008; /* ZE_RESULT_ERROR_UNSUPPORTED_SIZE */
    }
    return real(context, asked, size, alignment, pointer);
}
"""


def test_host_memory_above_the_limit_of_another_device(fresh, stand_in):
    """Relaxed limits are requested for it: the driver may apply the limit of any of its devices."""
    program = """
        import ctypes, os, zeusm.memory as zm
        import dpctl

        library = ctypes.CDLL(os.environ["ZEUSM_RUNTIME"])
        for name in ("level_zero:gpu:0", "level_zero:gpu:1"):
            for pool in (None, False):
                memory = zm.MemoryUSMHost(4 << 20, queue=name, pool=pool)
                memory[:1] = 7
                assert memory.tobytes()[0] == 7
        assert ctypes.c_int.in_dll(library, "refused").value == 0
    """
    fresh(program, env=TWO | {"ZEUSM_RUNTIME": str(stand_in(FIRST_DEVICES_LIMIT))})


def test_handles_pass_between_processes_that_see_different_devices(several, tmp_path):
    """As in a program of several ranks, each of which sees one device."""
    program = f"""
        import subprocess, sys
        memory = zm.MemoryUSMDevice(NUMBERS.nbytes)
        memory.copy_from_host(NUMBERS)
        handle = memory.ipc_handle()
        import pathlib
        path = pathlib.Path({str(tmp_path / "handle")!r})
        if path.exists():
            import pickle
            try:
                with zm.IPCMemoryHandle.open(pickle.loads(path.read_bytes()), device=gpus[-1]) as opened:
                    print(opened.tobytes() == NUMBERS.tobytes(), opened.sycl_device.name[:19])
            except zm.IPCError as error:
                print(type(error).__name__, "device" in str(error))
        else:
            import os, pickle
            path.write_bytes(pickle.dumps(handle))
            for mask in ["0", "1", "0,1"]:
                env = os.environ | {{"ZE_AFFINITY_MASK": mask}}
                print(subprocess.check_output([sys.executable, *sys.orig_argv[1:]], env=env, text=True), end="")
    """
    expected = "IPCError True\nTrue zeusm CPU runtime 1\nTrue zeusm CPU runtime 1\n"
    assert several(program, TWO | {"ZE_AFFINITY_MASK": "1"}).stdout == expected


def test_a_staged_copy_between_overlapping_parts(several):
    """Host memory that two devices use, neither of which reaches the other's memory."""
    several(
        """
        context = dpctl.SyclContext(gpus)
        first, second = (dpctl.SyclQueue(context, device) for device in gpus)
        content = np.random.default_rng(1).integers(0, 256, (9 << 20) + 3, "uint8")
        memory = zm.MemoryUSMHost(content.nbytes, queue=first)

        class Other:
            __sycl_usm_array_interface__ = dict(memory.__sycl_usm_array_interface__, syclobj=second)

        other = zm.as_usm_memory(Other)
        assert other.sycl_device != memory.sycl_device
        for distance in (5, 5 << 20):
            front, back = slice(-distance), slice(distance, None)
            for to, source in ((back, front), (front, back)):
                memory.copy_from_host(content)
                other[to].copy_from_device(memory[source])
                expected = content.copy()
                expected[to] = content[source]
                assert np.array_equal(np.frombuffer(memory.tobytes(), "uint8"), expected), distance
        """,
        TWO | APART,
    )


@pytest.mark.parametrize("copy", ["target.copy_from_device(source)", "copied()"])
def test_peer_copies_leave_nothing_behind(fresh, copy):
    """The queue of the source kept the events of each copy until another operation used it."""
    program = f"""
        import os
        import zeusm.memory as zm

        source, target = (zm.MemoryUSMDevice(1 << 16, queue=f"level_zero:gpu:{{n}}") for n in range(2))
        source.memset(1)

        def copied():
            target.copy_from_device_async(source).wait()

        def grown(copies):
            resident = os.sysconf("SC_PAGE_SIZE") * int(open("/proc/self/statm").read().split()[1])
            for _ in range(copies):
                {copy}
            pages = int(open("/proc/self/statm").read().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") - resident

        grown(1000)
        print(grown(4000))
    """
    assert int(fresh(program, env=TWO | APART).stdout) < 2 << 20
