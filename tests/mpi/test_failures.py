"""What goes wrong under Intel MPI ends with an error, and leaves no process behind."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("elements", [10, 300_000], ids=["short", "long"])
@pytest.mark.parametrize("kind", ["device", "shared"])
def test_a_rank_that_is_killed_in_a_collective_ends_the_others(mpirun, kind, elements, ranks):
    """Short messages are copied by the host, and sums of long ones computed by a kernel of MPI."""
    status, output, errors = mpirun(
        *("-n", ranks, sys.executable, HERE / "endless.py", kind, elements)
    )
    assert status != 0
    assert "BAD TERMINATION" in output
    assert "begins" in output
    assert "KILLED BY SIGNAL: 14" in output
    assert "failure in ze" not in output + errors


def masks(*each):
    """A rank for each mask."""
    arguments = []
    for mask in each:
        program = sys.executable, HERE / "transfers.py", "device"
        arguments += [":"] * bool(arguments) + ["-n", 1, "-env", "ZE_AFFINITY_MASK", mask, *program]
    return arguments


@pytest.mark.parametrize("each", [("0", "1"), ("1", "1,0"), ("0,1", "1,0")], ids=str)
def test_ranks_that_see_different_devices_send_each_other_memory(mpirun, each):
    status, output, errors = mpirun(*masks(*each), ZEUSM_CPU_DEVICES="2")
    assert status == 0, f"{output}\n{errors}"
    assert output.count(" compared\n") == 2
    assert "failure in ze" not in output + errors


def test_a_mask_of_no_device_is_named(mpirun):
    status, output, errors = mpirun(*masks("0", "7"), ZEUSM_CPU_DEVICES="2")
    assert status != 0
    assert 'ZE_AFFINITY_MASK="7" is not a list of devices 0 to 1' in output + errors
