"""Rows of docs/limits.md that blame dpctl, dpnp or Intel's OpenCL: a test fails when its row is obsolete.

Rows that say "may", "rarely" or "several threads", those of a wait that hangs beside a submission, and of commands that overtake
others depend on a race: whether the fault shows depends on the load of the machine, so they have no test.
"""

import subprocess
import sys
from pathlib import Path

import kernel_tables
import pytest
import spirv

pytestmark = pytest.mark.once

INTEL_OPENCL = {"OCL_ICD_FILENAMES": str(Path(sys.prefix, "lib", "libintelocl.so"))}


def has_the_fault(program, *, says="", seconds=20, tries=3, env=None):
    """Whether the program once ends with an error that says so, or does not end."""
    for _ in range(tries):
        try:
            command = [sys.executable, "-c", program]
            ended = subprocess.run(
                command, env=env, timeout=seconds, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        if ended.returncode != 0 and says in ended.stderr:
            return True
    return False


def test_the_first_sort_of_bytes():
    program = """
import numpy as np, dpnp

numbers = dpnp.asarray(np.arange(10007) % 2 == 0, device="opencl:cpu")
dpnp.sort(numbers{}).sycl_queue.wait()
"""
    whole = program.format(".astype('i4')")
    assert not has_the_fault(whole, seconds=240, tries=1, env=INTEL_OPENCL)
    assert has_the_fault(program.format(""), env=INTEL_OPENCL), "the row of the sort is obsolete"


def test_arrays_of_dpnp_without_dimensions_are_exported_read_only():
    program = """
import dpnp

dpnp.from_dlpack(dpnp.asarray(1.0, device="opencl:cpu"))[()] = 2
"""
    told = "the row of 0-d arrays is obsolete"
    assert has_the_fault(program, says="read-only", env=INTEL_OPENCL), told


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module has another name")
def test_sub_interpreters():
    program = """
import _xxsubinterpreters as interpreters

for _ in range(2):
    interpreters.run_string(interpreters.create(), "import numpy, dpctl")
"""
    assert has_the_fault(program, says="ImportError", env={}), "the row of these is obsolete"


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
    told = "the row of signal handlers is obsolete"
    assert has_the_fault(program, says="AssertionError", env=INTEL_OPENCL), told


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
    assert size_of([64, 1]) == 1, "the row of sub-groups is obsolete"


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
assert calls, "the row of SIGCHLD is obsolete"
assert os.waitpid(-1, os.WNOHANG) == (0, 0), "the row of wait(NULL) is obsolete"
"""
    fresh(program, env={"ZEUSM_CACHE_SIZE": "0"})
