"""Rows of docs/limits.md that blame dpctl, dpnp or Intel's OpenCL: a test fails when its row is obsolete."""

import subprocess
import sys
from pathlib import Path

import pytest

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
