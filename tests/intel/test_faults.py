"""What goes wrong below the driver is an error in the program, and the program goes on."""

import subprocess
import sys
from pathlib import Path

import pytest
from on_the_simulator import MACHINE, MOVING

REQUESTS = Path(__file__).parent / "programs/requests.py"

LOST = """
    import zeusm
    from zeusm.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared

    host, shared = MemoryUSMHost(1 << 20), MemoryUSMShared(1 << 20)
    memoryview(host)[:] = bytes([7]) * (1 << 20)
    memory = MemoryUSMDevice(1 << 20)

    def told(step):
        try:
            step()
        except zeusm.LevelZeroError as error:
            return "ZE_RESULT_ERROR_DEVICE_LOST" in str(error)

    event = memory.copy_from_device_async(host)
    print(told(event.wait))
    print(told(memory.copy_to_host), told(lambda: shared.memset(1)))
    print(bytes(memoryview(host)[:4]))
    try:
        print(bytes(memoryview(shared)[:4]))
    except zeusm.LevelZeroError as error:
        print("lost")
"""


@pytest.mark.parametrize("stop", ["hang", "fault", "lost"])
def test_a_device_lost_in_the_middle_of_a_copy(program, stop):
    """Each later operation is told so, too; host memory stays; shared memory that may be on the device is refused."""
    wait, operations, host, shared = program(LOST, XE_SIM_STOP=f"{stop}:1").splitlines()
    assert (wait, operations, host) == ("True", "True True", repr(bytes([7]) * 4))
    assert shared == ("lost" if MACHINE in MOVING else repr(bytes(4)))


def test_a_full_device_gives_way_again(program):
    out = program(
        """
        from zeusm.memory import MemoryUSMDevice, USMAllocationError
        import dpctl

        kept = []
        try:
            while len(kept) < 12:
                kept.append(MemoryUSMDevice(64 << 20))
        except USMAllocationError as error:
            print("full")
        else:
            print("integrated" if "B580" not in dpctl.SyclDevice().name else "never full")
        kept.clear()
        print(MemoryUSMDevice(64 << 20).nbytes)
        """,
        XE_SIM_VRAM=str(512 << 20),
    )
    assert out.split() in (["full", str(64 << 20)], ["integrated", str(64 << 20)])


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_slow_engine_changes_nothing(program, seed):
    program(
        """
        from zeusm.memory import MemoryUSMDevice

        memory = MemoryUSMDevice(1 << 16)
        for value in range(50):
            memory.memset(value)
            assert bytes(memory.copy_to_host()) == bytes([value]) * (1 << 16)
        """,
        XE_SIM_SLOW=seed,
    )


# Both end the driver: the one as a failure that is taken for impossible, the other by an abort of the driver's own.
@pytest.mark.parametrize(
    "request_", ["DRM_IOCTL_XE_VM_CREATE:abort", "DRM_IOCTL_XE_VM_BIND:ENOMEM"]
)
def test_a_driver_that_aborts_at_its_start_leaves_the_cpu(program, request_, tmp_path):
    out = program(
        """
        import warnings

        with warnings.catch_warnings(record=True) as told:
            import zeusm

            print(zeusm.runtime().kind)
        print(told[0].message)
        """,
        XE_SIM_FAIL=request_,
        XDG_CACHE_HOME=str(tmp_path),
    )
    kind, why = out.splitlines()
    assert kind == "cpu"
    assert "it ended the process by signal 6" in why


@pytest.mark.skipif(MACHINE not in MOVING, reason="an integrated GPU has no BAR for memory")
def test_a_small_bar_is_named(program, tmp_path):
    """The driver refuses such a device, and says why on standard error only."""
    out = program(
        """
        import warnings

        with warnings.catch_warnings(record=True) as told:
            import zeusm

            print(zeusm.runtime().kind)
        print(told[0].message)
        """,
        XE_SIM_BAR=str(256 << 20),
        XDG_CACHE_HOME=str(tmp_path),
    )
    kind, why = out.splitlines()
    assert kind == "cpu"
    assert "Resizable BAR not detected" in why


# What the driver does not survive: a request that fails for good while it moves shared memory in a page fault or before a
# copy. The process ends inside the driver, in the function named.
DIES = "cpu_page_fault_memory_manager.cpp"
FOR_GOOD = {"DRM_IOCTL_XE_VM_BIND", "DRM_IOCTL_XE_EXEC"}
# The driver takes shared memory whose mapping failed for moved.
LOSES = "DRM_IOCTL_XE_GEM_MMAP_OFFSET:ENOMEM:2:1"


def test_each_request_may_fail():
    """The right class of error or none, and the program goes on; what the driver does not survive is known by name."""
    first, found = 0, []
    while True:
        run = subprocess.run(
            [sys.executable, REQUESTS, str(first)],
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
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
        if run.returncode != 3:  # 3: the device is lost, and the next case wants a new process.
            request, *rest = case.split(":")
            known = DIES in run.stdout + run.stderr and request in FOR_GOOD and len(rest) == 1
            found += (
                []
                if known
                else [f"{case}: exit {run.returncode}\n{run.stdout[-500:]}\n{run.stderr[-500:]}"]
            )
        first = int(number) + 1
    found = [text for text in found if MACHINE not in MOVING or not text.startswith(LOSES)]
    assert not found, "\n".join(found)
