"""Limits of the process that a failed allocation names: of its addresses, and of its control groups (see cpu/tests/limits.rs)."""

import os
import re
import subprocess
import sys
from pathlib import Path

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


SHARED = """
import resource
import zeusm.memory as zm

shared = zm.MemoryUSMShared(4 << 20, pool=False)
handle = None if {is_export} else shared.ipc_handle()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), -1))
try:
    zm.IPCMemoryHandle.open(handle or shared.ipc_handle())
except zm.IPCError as error:
    print(error)
"""


@pytest.mark.once
@pytest.mark.parametrize("is_export", [True, False])
def test_a_limit_of_addresses_is_named_where_memory_cannot_be_shared(is_export):
    run = subprocess.run(
        [sys.executable, "-c", SHARED.format(is_export=is_export)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert re.search(r"RLIMIT_AS .* of which .* are free$", run.stdout.strip()), run.stdout


GROUP = """
import os
import sys
from pathlib import Path

folder = Path(sys.argv[1])
(folder / "cgroup.procs").write_text(str(os.getpid()))
import zeusm.memory as zm

memories = []
try:
    while True:
        memories.append(zm.MemoryUSMHost(4_000_000, pool=False))
        memories[-1].memset(1)
except MemoryError as error:
    print(error)
"""


@pytest.fixture
def control_group():
    """A control group with 400 MB of memory, of either version."""
    for mounted, limit in [("memory", "memory.limit_in_bytes"), ("", "memory.max")]:
        folder = Path("/sys/fs/cgroup", mounted, f"zeusm-test-python-{os.getpid()}")
        try:
            folder.mkdir()
            (folder / limit).write_text("400000000")
        except OSError:
            if folder.is_dir():
                folder.rmdir()
            continue
        yield folder
        folder.rmdir()
        return
    pytest.skip("control groups cannot be made here")


@pytest.mark.once
def test_a_limit_of_a_control_group_is_named_with_what_is_free(control_group):
    run = subprocess.run(
        [sys.executable, "-c", GROUP, control_group],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "control groups limit the memory of this process to 381.5 MiB" in run.stdout
    assert run.stdout.endswith("free memory, or raise that limit\n")
    assert "the device limits" not in run.stdout
