"""What goes wrong below the driver is an error in the program, and the program goes on."""

import pytest

LOST = """
    import zeusm
    from zeusm.memory import MemoryUSMDevice, MemoryUSMHost

    memory = MemoryUSMDevice(1 << 20)
    memory.memset(1)
    try:
        memory.memset(2)
    except zeusm.LevelZeroError as error:
        print(error)
    try:
        memory.copy_to_host()
    except zeusm.LevelZeroError as error:
        print("again")
    host = MemoryUSMHost(4096)
    memoryview(host)[:4] = b"here"
    print(bytes(memoryview(host)[:4]))
"""


@pytest.mark.parametrize("stop", ["hang", "fault", "lost"])
def test_a_stopped_engine_is_a_lost_device(program, stop):
    told, again, here = program(LOST, XE_SIM_STOP=f"{stop}:2").splitlines()
    assert "ZE_RESULT_ERROR_DEVICE_LOST" in told
    assert (again, here) == ("again", "b'here'")


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


@pytest.mark.xfail(reason="the driver is asked in the process itself", strict=True)
@pytest.mark.parametrize(
    "request_", ["DRM_IOCTL_XE_VM_CREATE:abort", "DRM_IOCTL_XE_VM_BIND:ENOMEM"]
)
def test_a_driver_that_aborts_at_its_start_leaves_the_cpu(program, request_):
    out = program("import zeusm; print(zeusm.runtime().kind)", XE_SIM_FAIL=request_)
    assert out.strip() == "cpu"
