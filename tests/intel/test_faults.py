"""Failures below the driver are reported as errors, and the program can continue."""

import pytest
from on_the_simulator import MACHINE, MOVING

LOST = """
    import zeusm
    from zeusm.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared

    host, shared = MemoryUSMHost(1 << 20), MemoryUSMShared(1 << 20)
    memoryview(host)[:] = bytes([7]) * (1 << 20)
    memory = MemoryUSMDevice(1 << 20)

    def is_reported(step):
        try:
            step()
        except zeusm.LevelZeroError as error:
            return "ZE_RESULT_ERROR_DEVICE_LOST" in str(error)

    event = memory.copy_from_device_async(host)
    print(is_reported(event.wait))
    print(is_reported(memory.copy_to_host), is_reported(lambda: shared.memset(1)))
    print(bytes(memoryview(host)[:4]))
    try:
        print(bytes(memoryview(shared)[:4]))
    except zeusm.LevelZeroError as error:
        print("lost")
"""


@pytest.mark.parametrize("stop", ["hang", "fault", "lost"])
def test_a_device_lost_in_the_middle_of_a_copy(program, stop):
    """Later operations report the lost device. Host memory stays valid; access to shared memory that may reside on the
    device is an error.
    """
    wait, operations, host, shared = program(LOST, XE_SIM_STOP=f"{stop}:1").splitlines()
    assert (wait, operations, host) == ("True", "True True", repr(bytes([7]) * 4))
    assert shared == ("lost" if MACHINE in MOVING else repr(bytes(4)))


@pytest.mark.parametrize("order", ["in order", "out of order"])
def test_a_device_lost_under_work_of_sycl(program, order):
    """Host access that waits for it is an error: SYCL throws in a wait for an out-of-order queue, and never completes the
    event of an in-order queue.
    """
    out = program(
        f"""
        import dpctl
        import dpctl.memory as dm
        import zeusm
        import zeusm.memory as zm

        queue = dpctl.SyclQueue(property={["in_order"] if order == "in order" else []})
        source, target = (kind(64 << 20, queue=queue) for kind in (dm.MemoryUSMDevice, dm.MemoryUSMHost))
        memory = zm.as_usm_memory(target)
        event = queue.memcpy_async(target, source, 64 << 20)
        try:
            memoryview(memory)
        except Exception as error:
            print("DEVICE_LOST" in str(error))
        """,
        XE_SIM_STOP="hang:1",
    )
    assert out.split() == ["True"]


def test_a_failed_submission_is_not_executed_later(program):
    """The driver leaves its commands in the list, whose destruction would submit them again, after the operands were freed."""
    out = program(
        """
        import ctypes
        import random
        import time

        import dpctl
        import zeusm.memory as zm

        fail = ctypes.CDLL(None).xe_sim_fail
        devices = dpctl.get_devices(backend="level_zero", device_type="gpu")
        queues = [dpctl.SyclQueue(device) for device in devices]
        queues.append(dpctl.SyclQueue(dpctl.SyclContext([devices[0]]), devices[0]))
        memories = [zm.MemoryUSMDevice(1 << 20, queue=queue) for queue in queues]
        choose, kept, failures = random.Random(2), [], 0
        for turn in range(350):
            value = turn % 200 + 1
            for memory in memories:
                memory.memset(value)
            for memory in memories:
                for size in 100, 5000, 65536:
                    buffer = bytearray(size)
                    if choose.random() < 0.5:
                        memory[:size].copy_to_host_async(buffer).wait()
                    else:
                        memory[:size].copy_to_host(buffer)
                    kept.append((value, buffer))
            time.sleep(choose.choice([0, 0.006, 0.012]))  # The driver submits without a request for some milliseconds.
            assert fail(f"DRM_IOCTL_XE_EXEC:{choose.choice(['EIO', 'EINVAL', 'ENOSPC'])}:1".encode()) >= 0
            for _ in range(choose.randrange(1, 4)):
                memory, other = choose.choice(memories), choose.choice(memories)
                steps = [
                    lambda: memory.memset(255),
                    lambda: memory.copy_to_host(bytearray(1 << 20)),
                    lambda: other.copy_from_device(memory),
                    lambda: memory[:5000].copy_to_host(bytearray(5000)),
                ]
                try:
                    choose.choice(steps)()
                except RuntimeError:
                    failures += 1
            assert fail(None) >= 0
            for memory in memories:
                memory.memset(201)
            assert all(buffer.count(value) == len(buffer) for value, buffer in kept)
            del kept[:-60]
        print(failures > 100)
        """
    )
    assert out.split() == ["True"]


def test_a_full_device_gives_way_again(program):
    out = program(
        """
        from zeusm.memory import MemoryUSMDevice, USMAllocationError
        import dpctl

        kept = []
        try:
            while len(kept) < 12:
                memory = MemoryUSMDevice(64 << 20)
                memory.memset(len(kept))
                kept.append(memory)
        except USMAllocationError as error:
            print("full")
            for value, memory in enumerate(kept):
                assert bytes(memory[-4:].copy_to_host()) == bytes([value]) * 4
        else:
            print("integrated" if "B580" not in dpctl.SyclDevice().name else "never full")
        kept.clear()
        print(MemoryUSMDevice(64 << 20).nbytes)
        """,
        XE_SIM_VRAM=str(512 << 20),
    )
    assert out.split() in (["full", str(64 << 20)], ["integrated", str(64 << 20)])


@pytest.mark.skipif(MACHINE not in MOVING, reason="an integrated GPU has no memory of its own")
@pytest.mark.parametrize("options", ["", ", pool=False"])
def test_a_full_device_takes_the_free_memory_of_other_pools(program, options):
    program(
        f"""
        from zeusm.memory import MemoryPool, MemoryUSMDevice

        pools = [MemoryPool("device") for _ in range(4)]
        for pool in pools:
            pool.malloc(64 << 20)
        assert [pool.free_bytes() for pool in pools] == [64 << 20] * 4
        memory = MemoryUSMDevice(192 << 20{options})
        memory.memset(7)
        assert bytes(memory[-4:].copy_to_host()) == bytes([7]) * 4
        """,
        XE_SIM_VRAM=str(512 << 20),
    )


@pytest.mark.skipif(MACHINE not in MOVING, reason="an integrated GPU has no memory of its own")
def test_the_first_operation_takes_the_free_memory_of_pools(program):
    """Its command list needs memory of the device."""
    program(
        """
        import zeusm.memory as zm

        memory, blocks = zm.MemoryUSMDevice(65536), []
        while zm.mem_get_info()[0] >= 2 << 20:
            blocks.append(zm.MemoryUSMDevice(1 << 20))
        while zm.mem_get_info()[0] >= 65536:
            blocks.append(zm.MemoryUSMDevice(65536, pool=False))
        blocks = None
        memory.memset(7)
        assert memory.tobytes() == bytes([7]) * 65536
        """,
        XE_SIM_VRAM=str(256 << 20),
    )


@pytest.mark.skipif(MACHINE not in MOVING, reason="an integrated GPU has no memory of its own")
@pytest.mark.parametrize("free", [512, 1536, 2560, 4096, 5120])
def test_the_first_operation_on_a_full_device(program, free):
    """The driver crashed in the creation of a command list, where a part of its allocations succeeded."""
    out = program(
        f"""
        import dpctl.memory
        import zeusm
        import zeusm.memory as zm

        memory = zm.MemoryUSMDevice(65536, pool=False)
        # zeusm leaves the driver more. SYCL's first allocation needs memory of its own.
        first = dpctl.memory.MemoryUSMDevice(65536)
        size = (zm.mem_get_info()[0] + (32 << 20) - {free << 10}) // 65536 * 65536
        rest = dpctl.memory.MemoryUSMDevice(size)
        try:
            memory.memset(7)
        except zeusm.LevelZeroError as error:
            print("OUT_OF_DEVICE_MEMORY" in str(error))
        rest = None
        memory.memset(7)
        print(set(memory.tobytes()))
        """,
        XE_SIM_VRAM=str(256 << 20),
    )
    assert out.split() == ["True", "{7}"]


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


@pytest.mark.skipif(MACHINE not in MOVING, reason="an integrated GPU has no BAR for memory")
def test_a_small_bar_is_named(program, tmp_path):
    """The driver rejects such a device, and reports the reason on standard error only."""
    out = program(
        """
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            import zeusm

            print(zeusm.runtime().kind)
        print(caught[0].message)
        """,
        XE_SIM_BAR=str(256 << 20),
        XDG_CACHE_HOME=str(tmp_path),
    )
    kind, why = out.splitlines()
    assert kind == "cpu"
    assert "Resizable BAR not detected" in why
