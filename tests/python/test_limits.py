"""Rows of docs/limits.md that blame dpctl, dpnp or Intel's OpenCL: a test fails when its row is obsolete."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

INTEL_OPENCL = {"OCL_ICD_FILENAMES": str(Path(sys.prefix, "lib", "libintelocl.so"))}


def has_the_fault(program, *, seconds=20, tries=3, env=None):
    """Whether the program once ends with an error, or does not end. Without zeusm the fault cannot be zeusm's."""
    for _ in range(tries):
        try:
            command = [sys.executable, "-c", program]
            ended = subprocess.run(
                command, env=env, timeout=seconds, capture_output=True, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        if ended.returncode != 0:
            return True
    return False


def test_the_first_sort_of_bytes():
    program = """
import numpy as np, dpnp

numbers = dpnp.asarray(np.arange(10007) % 2 == 0, device="opencl:cpu")
dpnp.sort(numbers{}).sycl_queue.wait()
"""
    assert not has_the_fault(program.format(".astype('i4')"), tries=1, env=INTEL_OPENCL)
    assert has_the_fault(program.format(""), env=INTEL_OPENCL), "the row of the sort is obsolete"
