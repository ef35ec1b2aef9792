"""Submissions return without waiting for the device, and small operations need none."""

import os
import re
import subprocess
import sys
import textwrap

import pytest
import zeusm.memory
from on_the_simulator import DISCRETE, MACHINE


@pytest.fixture(scope="module")
def large():
    """Memory large enough for a fill to stay in flight."""
    return zeusm.memory.MemoryUSMDevice(256 << 20)


# A driver that copies such sizes by the host waits for the operations before, in the append.
@pytest.mark.parametrize("size", [64, 1024, 1 << 20])
@pytest.mark.parametrize("direction", ["to", "from"])
def test_a_copy_behind_other_work_is_only_submitted(large, direction, size):
    memory, host = zeusm.memory.MemoryUSMDevice(size), bytearray(size)
    memory.memset(1)
    if direction == "to":
        expected = bytes([1]) * size
        copy = memory.copy_to_host_async
    else:
        host[:] = expected = bytes([2]) * size
        copy = memory.copy_from_host_async
    copy(host).wait()
    for value in range(8):
        before = large.memset_async(value)
    copied = copy(host)
    assert not before.is_complete
    copied.wait()
    assert before.is_complete
    assert host == expected == memory.tobytes()


def test_a_wait_that_begins_before_the_submission(large):
    """The driver may take an event for complete while another thread appends the operation that signals it."""
    for value in range(1, 31):
        memory, first = zeusm.memory.MemoryUSMShared(300), bytearray(300)
        memory.memset(value)
        for _ in "ab":
            large.memset_async(value)
        memory.copy_to_host_async(first)
        assert memory.copy_to_host(bytearray(300)) == bytes([value]) * 300
        assert first == bytes([value]) * 300


@pytest.mark.skipif(MACHINE not in DISCRETE, reason="the GPU is integrated")
@pytest.mark.parametrize(
    "operation",
    [
        "memory.copy_from_host(bytes(64))",
        "memory.copy_to_host(bytearray(64))",
        "memory.memset(3)",
    ],
)
def test_small_operations_of_a_discrete_gpu_are_executed_by_the_host(operation):
    """The driver does that if it cannot compress the memory."""
    code = f"""
        import zeusm.memory

        memory = zeusm.memory.MemoryUSMDevice(64)
        {operation}
        for _ in range(5):
            print("begin", flush=True)
            {operation}
            print("end", flush=True)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"XE_SIM_LOG": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=True,
    )
    inside = re.findall(r"begin\n(.*?)end\n", result.stdout, re.DOTALL)
    assert len(inside) == 5
    assert not [
        line for part in inside for line in part.splitlines() if "WALKER" in line or "MEM_" in line
    ]
    assert "xe-sim[" in result.stdout
