"""The tables of kernels on OpenCL's own device: the answers are those of the CPU runtime."""

import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.daily]


def test_opencl_gives_the_same_answers(fresh):
    fresh(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import zeusm  # names the instruction set to OpenCL where that does not know the processor
        import kernel_tables
        kernel_tables.everything("opencl:cpu")
        """,
        Path(__file__).parent,
        env={"OCL_ICD_FILENAMES": str(Path(sys.prefix, "lib", "libintelocl.so"))},
    )
