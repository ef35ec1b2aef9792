"""Requests to the kernel that fail: while the driver starts, in operations, and at the exit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from on_the_simulator import MACHINE, MOVING

PROGRAM = Path(__file__).parent / "programs/requests.py"
# Without its caches and pools the driver makes requests for each allocation, and without direct submission for each
# operation: its ring is only submitted again if its timer has stopped it meanwhile.
UNCACHED = {
    "NEOReadDebugKeys": "1",
    "EnableDirectSubmission": "0",
    "ExperimentalEnableDeviceAllocationCache": "0",
    "ExperimentalEnableHostAllocationCache": "0",
    "ExperimentalEnableSharedAllocationCache": "0",
    "EnableDeviceUsmAllocationPool": "0",
    "EnableHostUsmAllocationPool": "0",
}

# The driver aborts the process if a request fails permanently while it migrates shared memory in a page fault or before a
# copy. The abort message names this source file.
DIES = "cpu_page_fault_memory_manager.cpp"
FOR_GOOD = {"DRM_IOCTL_XE_VM_BIND", "DRM_IOCTL_XE_EXEC"}
# Where this fails permanently, the driver of Lunar Lake has no command buffer for an append either, and corrupts the heap.
ONCE = set() if MACHINE in MOVING else {"DRM_IOCTL_XE_GEM_CREATE"}
# With wrong data on a discrete GPU, and a SIGSEGV on an integrated one (docs/gpus.md, "Failing maps").
UNNOTICED = pytest.mark.xfail(reason="the driver does not check the second mapping", strict=True)
NAMES = [
    "DRM_IOCTL_XE_GEM_CREATE",
    "DRM_IOCTL_XE_GEM_MMAP_OFFSET",
    "DRM_IOCTL_XE_VM_BIND",
    "DRM_IOCTL_XE_EXEC",
    "DRM_IOCTL_XE_WAIT_USER_FENCE",
    "DRM_IOCTL_PRIME_HANDLE_TO_FD",
    "DRM_IOCTL_PRIME_FD_TO_HANDLE",
    "DRM_IOCTL_GEM_CLOSE",
    pytest.param("mmap", marks=UNNOTICED),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_each_request_may_fail(name):
    """Each failure raises the right class of error or none, and the program continues. The cases in which the driver aborts
    are listed above.
    """
    first, found = 0, []
    while True:
        run = subprocess.run(
            [sys.executable, PROGRAM, name, str(first), *(["once"] if name in ONCE else [])],
            env=os.environ | UNCACHED,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        case = None
        for line in run.stdout.splitlines():
            if line.startswith("case "):
                _, number, case = line.split()
            elif line.startswith("WRONG"):
                found.append(f"{case}: {line}")
        if run.stdout.endswith("done\n"):
            break
        assert case is not None, run.stderr
        if run.returncode != 3:  # 3: the device is lost, and the next case needs a new process.
            request, *rest = case.split(":")
            known = DIES in run.stdout + run.stderr and request in FOR_GOOD and len(rest) == 1
            found += (
                []
                if known
                else [f"{case}: exit {run.returncode}\n{run.stdout[-500:]}\n{run.stderr[-500:]}"]
            )
        first = int(number) + 1
    assert not found, "\n".join(found)


# Both terminate the process during the driver's initialisation: the first is an injected abort, in the second the driver
# aborts on the failed request.
@pytest.mark.parametrize(
    "request_", ["DRM_IOCTL_XE_VM_CREATE:abort", "DRM_IOCTL_XE_VM_BIND:ENOMEM"]
)
def test_a_driver_that_aborts_at_its_start_leaves_the_cpu(program, request_, tmp_path):
    out = program(
        """
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            import zeusm

            print(zeusm.runtime().kind)
        print(caught[0].message)
        """,
        XE_SIM_FAIL=request_,
        XDG_CACHE_HOME=str(tmp_path),
    )
    kind, why = out.splitlines()
    assert kind == "cpu"
    assert "it ended the process by signal 6" in why


# A program that uses memory of each kind, and how it ended: on the GPU, on the CPU after a warning, or with an error.
PROGRAM_OF_EACH_KIND = """
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import zeusm
        import zeusm.memory as zm

        kind = zeusm.runtime().kind
    assert (kind == "cpu") == any("an Intel GPU is present" in str(each.message) for each in caught)
    try:
        for make in zm.MemoryUSMDevice, zm.MemoryUSMShared, zm.MemoryUSMHost:
            memory = make(1 << 20)
            memory.memset(7)
            assert bytes(memory.copy_to_host()) == bytes([7]) * (1 << 20)
        print(kind)
    except (zeusm.LevelZeroError, zm.USMAllocationError):
        print("reported")
"""
OF_THE_START = [
    "DRM_IOCTL_VERSION",
    "DRM_IOCTL_XE_DEVICE_QUERY",
    "DRM_IOCTL_XE_VM_CREATE",
    "DRM_IOCTL_XE_EXEC_QUEUE_CREATE",
    "DRM_IOCTL_XE_GEM_CREATE",
    "DRM_IOCTL_XE_GEM_MMAP_OFFSET",
    "DRM_IOCTL_XE_VM_BIND",
    "DRM_IOCTL_XE_EXEC",
    "mmap",
]
OF_THE_EXIT = [
    "DRM_IOCTL_XE_VM_DESTROY",
    "DRM_IOCTL_XE_EXEC_QUEUE_DESTROY",
    "DRM_IOCTL_GEM_CLOSE",
]


@pytest.mark.parametrize("error", ["ENOMEM", "ENODEV:2:1", "EINVAL:4:1"])
@pytest.mark.parametrize("name", OF_THE_START)
def test_a_request_of_the_start_may_fail(program, name, error, tmp_path):
    """The program runs on the GPU, or on the CPU with a warning, or gets an error."""
    variables = {"XE_SIM_FAIL": f"{name}:{error}", "XDG_CACHE_HOME": str(tmp_path)}
    assert program(PROGRAM_OF_EACH_KIND, **variables).strip() in {"system", "cpu", "reported"}


# With other errors, which the kernel does not return for them, the driver aborts at the exit.
@pytest.mark.parametrize("name", OF_THE_EXIT)
def test_a_request_of_the_exit_may_fail(program, name, tmp_path):
    variables = {"XE_SIM_FAIL": f"{name}:ENODEV", "XDG_CACHE_HOME": str(tmp_path)}
    assert program(PROGRAM_OF_EACH_KIND, **variables).strip() == "system"
