"""Limits of the process that a failed allocation names: of its addresses, and of its control groups (see cpu/tests/limits.rs)."""

import re
import subprocess
import sys

import pytest

ADDRESSES = """
import resource
import zeusm.memory as zm

zm.MemoryUSMShared(100)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), -1))
try:
    zm.MemoryUSMDevice(64 << 20)
except MemoryError as error:
    print(error)
"""


@pytest.mark.once
def test_a_limit_of_addresses_is_named_with_what_is_free():
    run = subprocess.run(
        [sys.executable, "-c", ADDRESSES], capture_output=True, text=True, timeout=120, check=True
    )
    what = re.escape("RLIMIT_AS (ulimit -v) limits the addresses of this process to")
    pattern = rf"{what} \S+ \S+ \((\d+) bytes\), of which \S+ \S+ \((\d+) bytes\) are free"
    limit, free = (int(number) for number in re.findall(pattern, run.stdout)[0])
    assert 0 < free <= 32 << 20 < limit
