"""Rows of docs/limits.md that blame dpctl, dpnp or Intel's OpenCL: a test fails when its row is obsolete."""

import re
import subprocess
import sys
from pathlib import Path

import kernel_tables
import pytest
import spirv

pytestmark = pytest.mark.once

TESTS = Path(__file__).resolve().parents[1]
RACE = "whether the fault shows depends on the load of the machine"
ABSENT = "it blames a package that these environments have not"
OURS = "it blames zeusm, its runtime or the system: what they do instead is tested beside them"
RULE = "it blames no version of a package, but a rule of Level Zero, SYCL or Python"
GPU = "it needs a GPU: tests/intel"

# How each row begins, and the test that fails when it is obsolete, or why it has none. Those of `test_numba_dpex.py` run with
# dpctl 0.17 and dpnp 0.15.
ROWS = {
    # On the CPU runtime.
    "the first `fft`": "test_limits.py::test_the_first_transform_is_compiled",
    "`fft` of long vectors": "test_limits.py::test_transforms_of_large_primes",
    "oneDNN on": ABSENT,
    "dpnp 0.15 on": "test_numba_dpex.py::test_a_transform_on_a_gpu_ends_the_process",
    "`cholesky` of real": "test_onemkl.py::test_what_a_processor_cannot_run_is_refused",
    "the first sort": "test_limits.py::test_the_first_sort_of_bytes",
    "ggml's product": "../foreign/test_llama.py::test_a_product_of_a_permuted_operand",
    "ggml's kernels with sub-groups": "../foreign/test_llama.py::test_norms_without_optimisation_are_wrong",
    "a kernel that Intel's compiler takes minutes for": ABSENT,
    "several Python threads": RACE,
    "a process that has kernels in flight": RACE,
    "a program whose first thread has used TBB": RACE,
    "float arithmetic of dpnp": RACE,
    "with SYCL 2024 (dpctl 0.17), a process grows": (
        "test_numba_dpex.py::test_launches_in_a_context_of_several_devices_grow_the_process"
    ),
    "oneDAL's RandomForest": "../peers/test_sklearnex.py::test_the_second_fit_on_a_gpu_is_wrong",
    "sub-groups of a work-group": (
        "test_limits.py::test_sub_groups_of_a_group_that_is_narrow_in_opencls_first_dimension"
    ),
    "a wait for a kernel by a coroutine": OURS,
    "a loop that waits for all children": (
        "test_limits.py::test_a_program_sees_a_child_at_its_first_module"
    ),
    "a program with a handler of `SIGCHLD`": (
        "test_limits.py::test_a_program_sees_a_child_at_its_first_module"
    ),
    "a process that has nearly all": OURS,
    "`zeKernelGetProperties`": OURS,
    "images of packed": OURS,
    "kernels, where the path": "test_doctor.py::test_an_opencl_runtime_at_a_path_with_a_space",
    "dma-buf,": OURS,
    "programs that looked for SYCL devices": "test_limits.py::test_sycl_looks_for_devices_once",
    "speed:": OURS,
    # On Intel GPUs.
    "host and device use one": GPU,
    "system calls on shared memory": GPU,
    "`MemoryUSMHost.from_host` is refused": GPU,
    "a child of `fork` cannot": GPU,
    "shared memory that migrates": GPU,
    "memory that is spread over tiles": GPU,
    "kernels on blocks above 4 GiB": GPU,
    "Battlemage without": GPU,
    "work after the loss": GPU,
    "a process survives": GPU,
    # Everywhere.
    "PyTorch without XPU": ABSENT,
    "memory of `MemoryUSMHost.from_host`": OURS,
    "a pool of host or shared memory": OURS,
    "memory of a suspended pool": OURS,
    "CUDA memory in place": RULE,
    "kernels with memory of two contexts": RULE,
    "one SYCL queue that several threads": RACE,
    "a wait for a SYCL queue or event": RACE,
    "the first calls of dpnp in several threads": RACE,
    "with SYCL 2024 (dpctl 0.17), a command": (
        "test_numba_dpex.py::test_a_command_does_not_wait_for_an_event_of_another_device"
    ),
    "`to_device` of dpnp": "test_limits.py::test_a_copy_to_a_device_does_not_wait_for_kernels",
    "a program's signal handlers": "test_limits.py::test_signal_handlers_beside_opencl",
    "`dpnp.where` gives": "test_limits.py::test_a_choice_from_arrays_that_are_backwards",
    "arithmetic on `UsmArray`": OURS,
    "writing to a 0-d array": (
        "test_limits.py::test_arrays_of_dpnp_without_dimensions_are_exported_read_only"
    ),
    "the exit of a program": RACE,
    "masks and lists": OURS,
    "numba-dpex kernels over a `Range`": (
        "test_numba_dpex.py::test_a_kernel_over_a_range_is_wrong_in_strided_arrays"
    ),
    "numba-dpex's `call_kernel` after": (
        "test_numba_dpex.py::test_a_wait_in_the_order_of_a_queue_hangs"
    ),
    "asynchronous copies of CUDA": RULE,
    "zeusm frees memory": OURS,
    "forks while another thread": RACE,
    "dpnp in the child of a fork": "test_fork.py::test_the_row_of_dpnp_in_a_child_is_not_obsolete",
    "Intel MPI's collectives": ABSENT,
    "Intel MPI's `Allreduce`": ABSENT,
    "with three ranks or more of Intel MPI": RACE,
    "with `zeusm check`, Intel MPI": ABSENT,
    "oneCCL's C API": ABSENT,
    "collectives in a group of oneCCL": ABSENT,
    "derived types of Intel MPI": ABSENT,
    "in a current folder that has been deleted": (
        "test_limits.py::test_the_exit_of_sycl_in_a_deleted_folder"
    ),
    "the first use of zeusm, and the import of dpctl,": (
        "test_limits.py::test_an_import_of_dpctl_without_proc"
    ),
    "sub-interpreters": "test_limits.py::test_sub_interpreters",
    "IPC handles of another user": OURS,
    "read-only IPC": RULE,
    "IPC handles of memory that was exported": OURS,
    "protection against": RULE,
}


def test_each_row_has_a_test_or_a_reason_to_have_none():
    text = (TESTS.parent / "docs/limits.md").read_text()
    rows = [row for row in re.findall(r"^\| (.*?) \|", text, re.MULTILINE) if row != "What fails"]
    rows = [row for row in rows if set(row) != {"-"}]
    for row in rows:
        assert sum(map(row.startswith, ROWS)) == 1, f"{row}: not in ROWS"
    for begin, account in ROWS.items():
        assert any(row.startswith(begin) for row in rows), f"{begin}: no row begins so"
        file, separator, test = account.partition("::")
        if separator:
            assert f"def {test}(" in (TESTS / "python" / file).read_text(), account


INTEL_OPENCL = {"OCL_ICD_FILENAMES": str(Path(sys.prefix, "lib", "libintelocl.so"))}


def has_the_fault(program, *, within=(), says="", seconds=20, tries=3, env=None):
    """Whether the program once ends with an error that says so, or does not end."""
    for _ in range(tries):
        try:
            command = [*within, sys.executable, "-c", program]
            ended = subprocess.run(
                command, env=env, timeout=seconds, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        if ended.returncode != 0 and says in ended.stderr:
            return True
    return False


@pytest.mark.daily
def test_the_first_transform_is_compiled(fresh):
    program = """
import time
import zeusm, dpnp

numbers = dpnp.ones(48, dtype="c8", device="level_zero:gpu")


def seconds():
    begin = time.monotonic()
    dpnp.fft.fft(numbers).sycl_queue.wait()
    return time.monotonic() - begin


assert seconds() > 0.3, "the row of the first `fft` in docs/limits.md is obsolete"
assert min(seconds() for _ in range(9)) < 0.3
"""
    fresh(program, env={"ZEUSM_CACHE_SIZE": "0"})


@pytest.mark.daily
def test_transforms_of_large_primes(fresh):
    program = """
import numpy as np
import zeusm, dpnp

numbers = np.random.default_rng(0).standard_normal(10007).astype("c8")
right = np.fft.fft(numbers)


def error(type):
    array = dpnp.asarray(numbers.astype(type), device="level_zero:gpu")
    return abs(dpnp.asnumpy(dpnp.fft.fft(array)) - right).max() / abs(right).max()


assert error("c16") < 1e-6
assert error("c8") > 1e-5, "the row of `fft` of long vectors in docs/limits.md is obsolete"
"""
    fresh(program)


def test_sycl_looks_for_devices_once(fresh):
    program = """
import warnings
import dpctl

found = len(dpctl.get_devices("level_zero"))
warnings.simplefilter("ignore")  # zeusm says that it is too late.
import zeusm

told = "the row of programs that looked for SYCL devices in docs/limits.md is obsolete"
assert len(dpctl.get_devices("level_zero")) == found, told
"""
    fresh(program)


def test_a_copy_to_a_device_does_not_wait_for_kernels():
    program = """
import zeusm, dpctl, dpnp

here, there = map(dpctl.SyclQueue, ["opencl:cpu", "level_zero:gpu"])
one = dpnp.ones(4_000_000, sycl_queue=here)


def is_late():
    source = dpnp.zeros(one.size, sycl_queue=here)
    here.wait()
    for _ in range(20):
        dpnp.add(source, one, out=source)
    target = source.to_device(there)
    there.wait()
    here.wait()
    return bool((target == 20).all())


assert all(is_late() for _ in range(9)), "early"
"""
    told = "the row of `to_device` in docs/limits.md is obsolete"
    assert has_the_fault(program, says="early", seconds=200, env=INTEL_OPENCL), told


def test_the_first_sort_of_bytes():
    program = """
import numpy as np, dpnp

numbers = dpnp.asarray(np.arange(10007) % 2 == 0, device="opencl:cpu")
dpnp.sort(numbers{}).sycl_queue.wait()
"""
    whole = program.format(".astype('i4')")
    assert not has_the_fault(whole, seconds=240, tries=1, env=INTEL_OPENCL)
    assert has_the_fault(program.format(""), env=INTEL_OPENCL), (
        "the row of the first sort in docs/limits.md is obsolete"
    )


def test_arrays_of_dpnp_without_dimensions_are_exported_read_only():
    program = """
import dpnp

dpnp.from_dlpack(dpnp.asarray(1.0, device="opencl:cpu"))[()] = 2
"""
    told = "the row of 0-d arrays in docs/limits.md is obsolete"
    assert has_the_fault(program, says="read-only", env=INTEL_OPENCL), told


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module has another name")
def test_sub_interpreters():
    program = """
import _xxsubinterpreters as interpreters

for _ in range(2):
    interpreters.run_string(interpreters.create(), "import numpy, dpctl")
"""
    assert has_the_fault(program, says="ImportError", env={}), (
        "the row of sub-interpreters in docs/limits.md is obsolete"
    )


def test_an_import_of_dpctl_without_proc():
    apart = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("mount namespaces are not permitted, so /proc cannot be hidden")
    hidden = [*apart, 'mount -t tmpfs none /proc && exec "$0" "$@"']
    told = "the row of /proc in docs/limits.md is obsolete"
    assert has_the_fault("import dpctl", within=hidden, seconds=4, tries=1), told


def test_the_exit_of_sycl_in_a_deleted_folder():
    gone = ["sh", "-c", 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$0" "$@"']
    told = "the row of a deleted folder in docs/limits.md is obsolete"
    program = "import dpctl; dpctl.get_devices()"
    assert has_the_fault(program, within=gone, seconds=8, tries=1), told


def test_signal_handlers_beside_opencl():
    program = """
import signal
calls = []
signal.signal(signal.SIGUSR1, lambda number, _: calls.append(number))
import dpnp

(dpnp.ones(4, device="opencl:cpu") + 1).sycl_queue.wait()
signal.raise_signal(signal.SIGUSR1)
assert calls
"""
    told = "the row of signal handlers in docs/limits.md is obsolete"
    assert has_the_fault(program, says="AssertionError", env=INTEL_OPENCL), told


def test_a_choice_from_arrays_that_are_backwards(fresh):
    program = """
import zeusm, dpnp

x = dpnp.arange(24, device="level_zero:gpu").reshape(4, 6)[:, ::-2]
condition = x >= 0
assert (dpnp.where(dpnp.ascontiguousarray(condition), x, x) == x).all()
assert not (dpnp.where(condition, x, x) == x).all(), "the row of dpnp.where is obsolete"
"""
    fresh(program)


def test_sub_groups_of_a_group_that_is_narrow_in_opencls_first_dimension():
    """OpenCL's first dimension is SYCL's last one."""
    module = spirv.Module("i4", ["SubgroupDispatch"])

    def body(target):
        size = module.built_in(spirv.SUB_GROUP_SIZE, module.int)
        module.op("Store", module.at(target, module.constant(0), module.int), size)

    module.kernel("size", [module.pointer(spirv.CROSS_WORKGROUP, module.int)], body)
    launch = kernel_tables.Launcher("level_zero:gpu", module)
    kernel = launch.program.get_sycl_kernel("size")

    def size_of(group):
        target = kernel_tables.dpctl.memory.MemoryUSMShared(4, queue=launch.queue)
        launch.queue.submit(kernel, [target], group, group).wait()
        return target.copy_to_host().view("i4")[0]

    assert size_of([1, 64]) > 1
    assert size_of([64, 1]) == 1, "the row of sub-groups in docs/limits.md is obsolete"


def test_a_program_sees_a_child_at_its_first_module(fresh):
    """And a subreaper is the parent of the process that builds modules, once that child has ended."""
    program = """
import ctypes, os, signal

calls = []
signal.signal(signal.SIGCHLD, lambda number, _: calls.append(number))
assert ctypes.CDLL(None).prctl(36, 1) == 0  # PR_SET_CHILD_SUBREAPER
import zeusm, dpnp

calls.clear()
(dpnp.ones(4) + 1).sycl_queue.wait()
assert calls, "the row of SIGCHLD in docs/limits.md is obsolete"
assert os.waitpid(-1, os.WNOHANG) == (0, 0), "the row of wait(NULL) in docs/limits.md is obsolete"
"""
    fresh(program, env={"ZEUSM_CACHE_SIZE": "0"})
