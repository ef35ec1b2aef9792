"""Two GPUs in one context."""

import pytest
from on_the_simulator import MACHINE

pytestmark = pytest.mark.skipif(MACHINE != "bmg2", reason="the machine has one GPU")


def test_an_operation_waits_for_an_event_of_the_other_gpu(program):
    """An event of a pool that was not made for both GPUs crashed the driver."""
    out = program(
        """
        import dpctl
        import zeusm.memory as zm

        def memories(size, **options):
            queues = [dpctl.SyclQueue(device) for device in dpctl.get_devices()]
            return [zm.MemoryUSMDevice(size, queue=queue, **options) for queue in queues]

        a, b = memories(8 << 20, pool=False)
        written = a.memset_async(7)
        b.memset_async(1, depends=written).wait()
        a, b = memories(4096)
        a.memset(7)
        b.copy_from_device(a)
        print(b.tobytes() == bytes([7]) * 4096)
        """
    )
    assert out.strip() == "True"


@pytest.mark.parametrize("access", ["tail.view('u1').copy_to_host()", "pickle.dumps(tail)"])
def test_a_host_access_to_another_part_loses_no_bytes(program, access):
    """Shared memory migrates as a whole."""
    out = program(
        f"""
        import pickle
        import zeusm.memory as zm

        half, lost = 4 << 20, 0
        for _ in range(10):
            memory = zm.MemoryUSMShared(2 * half)
            memory.memset_async(1).wait()
            head, tail = memory[:half], memory[half:]
            written = head.memset_async(9)
            {access}
            written.wait()
            lost += head.tobytes() != bytes([9]) * half
        print(lost)
        """,
        XE_SIM_SLOW="1",
    )
    assert out.strip() == "0"


DEPENDENT = {
    "blocking": "b.copy_from_device(a)",
    "asynchronous": "b.copy_from_device_async(a).wait()",
    "dependent": "dependent()",
    "submitted before": "early()",
}


@pytest.mark.parametrize("is_known", [False, True], ids=["an unknown loss", "a known loss"])
@pytest.mark.parametrize("dependent", DEPENDENT.values(), ids=DEPENDENT)
def test_the_loss_of_one_does_not_stop_the_other(program, dependent, is_known):
    """An operation that waited on the device for one of the lost device never ended, nor did the process."""
    out = program(
        f"""
        import time
        import zeusm
        import zeusm.memory as zm

        a, b = (zm.MemoryUSMDevice(1 << 20, queue=f"level_zero:{{n}}") for n in range(2))
        b.memset(1)
        e = a.memset_async(1)
        dependent = lambda: b.memset_async(2, depends=e).wait()
        try:
            early = b.memset_async(2, depends=e).wait
        except zeusm.LevelZeroError:  # The loss came first.
            early = dependent
        def attempt(what):
            try:
                what()
                print("done")
            except zeusm.LevelZeroError:
                print("failed")
        attempt(lambda: {"e.wait()" if is_known else "time.sleep(0.5)"})
        for _ in range(2):
            attempt(lambda: {dependent})
            attempt(early)  # Those behind it would fail with it.
            print(set(b.tobytes()))
        b.memset(5)
        print(set(b.tobytes()))
        """,
        XE_SIM_STOP="lost:2",
    )
    assert out.split() == [
        "failed" if is_known else "done",
        *2 * ["failed", "failed", "{1}"],
        "{5}",
    ]


@pytest.mark.parametrize("stop", ["hang", "lost"])
def test_lost_work_of_sycl_does_not_stop_the_other(program, stop):
    """SYCL does not tell which device an event is of, so the operation gives up after some time, and is not executed."""
    out = program(
        """
        import dpctl
        import dpctl.memory as dm
        import zeusm
        import zeusm.memory as zm

        first, second = (dpctl.SyclQueue(device) for device in dpctl.get_devices())
        source, target = (dm.MemoryUSMDevice(64 << 20, queue=first) for _ in "ab")
        b = zm.MemoryUSMDevice(1 << 20, queue=second)
        b.memset(1)
        event = b.memset_async(2, depends=first.memcpy_async(target, source, 64 << 20))
        try:
            print(event.wait())
        except zeusm.LevelZeroError as error:
            print("DEVICE_LOST" in str(error))
        print(set(b.tobytes()))
        b.memset(5)
        print(set(b.tobytes()))
        """,
        XE_SIM_STOP=f"{stop}:2",
    )
    assert out.split() == ["True", "{1}", "{5}"]


def test_host_memory_of_a_lost_one_waits_for_the_other(program):
    out = program(
        """
        import zeusm
        import zeusm.memory as zm

        size = 64 << 20
        a, b = (zm.MemoryUSMDevice(size, queue=f"level_zero:{n}") for n in range(2))
        target = zm.MemoryUSMHost(size, queue="level_zero:0")
        try:
            a.memset(1)
        except zeusm.LevelZeroError:
            print("lost")
        b.memset(7)
        read = b.copy_to_host_async(memoryview(target))
        print(memoryview(target)[-1], read.is_complete)
        """,
        XE_SIM_STOP="lost:1",
    )
    assert out.split() == ["lost", "7", "True"]


@pytest.mark.parametrize("read", ["array.copy_to_host()", "memoryview(array)"])
def test_host_memory_of_the_second_one_waits_for_dlpack_consumers(program, read):
    """SYCL assigns host memory to the first device of its context, so dpnp submits its work to that device's queue."""
    out = program(
        f"""
        import dpnp
        import numpy as np
        import zeusm
        import zeusm.memory as zm

        size = 64 << 20
        sevens = zm.MemoryUSMHost(size)
        sevens.memset(7)
        array = zeusm.asarray(np.zeros(size, "u1"), usm_type="host", device="level_zero:1")
        theirs = dpnp.from_dlpack(array)
        theirs.sycl_queue.memcpy_async(theirs.get_array().usm_data, sevens, size)
        print({read}[-1])
        """,
        XE_SIM_SLOW="1",
    )
    assert out.strip() == "7"


def test_an_operation_that_depends_on_lost_work_of_another_context(program):
    """The wait of the host task ended with the loss, and the operation was executed."""
    out = program(
        """
        import dpctl
        import zeusm
        import zeusm.memory as zm

        devices = dpctl.get_devices()
        queues = [dpctl.SyclQueue(dpctl.SyclContext([device]), device) for device in devices]
        a, b = (zm.MemoryUSMDevice(1 << 20, queue=queue) for queue in queues)
        assert a.sycl_context != b.sycl_context
        b.memset(1)
        try:
            print(b.memset_async(2, depends=a.memset_async(1)).wait())
        except zeusm.LevelZeroError as error:
            print("DEVICE_LOST" in str(error))
        print(set(b.tobytes()))
        """,
        XE_SIM_STOP="hang:2",
    )
    assert out.split() == ["True", "{1}"]


@pytest.mark.parametrize("kind", ["Device", "Host"])
def test_memory_that_a_lost_one_was_reading(program, kind):
    """Each later operation on it failed, as it was ordered after that of the lost device."""
    out = program(
        f"""
        import time
        import zeusm
        import zeusm.memory as zm

        a, b = (zm.MemoryUSMDevice(1 << 20, queue=f"level_zero:{{n}}") for n in range(2))
        source = zm.MemoryUSM{kind}(1 << 20, queue="level_zero:1")
        source.memset(7)
        try:
            print(a.copy_from_device_async(source).wait())
        except zeusm.LevelZeroError:
            print("failed")
        time.sleep(3)  # Operations behind the copy, in the queue of its source, fail with it.
        b.copy_from_device(source)
        print(set(b.tobytes()))
        source.memset(5)
        print(set(source.tobytes()))
        """,
        XE_SIM_STOP="lost:2",
    )
    assert out.split() == ["failed", "{7}", "{5}"]


def test_messages_distinguish_gpus_of_one_name(program):
    """A message with the name alone did not tell which of the two GPUs was lost."""
    out = program(
        """
        import zeusm
        import zeusm.memory as zm

        memories = [zm.MemoryUSMDevice(1 << 20, queue=f"level_zero:{n}") for n in range(2)]
        event = memories[0].memset_async(1)
        for operation in (
            event.wait,
            lambda: memories[0].memset(1),
            lambda: memories[1].memset_async(1, depends=event).wait(),
            lambda: zm.MemoryUSMDevice(1 << 50, queue="level_zero:1"),
        ):
            try:
                operation()
            except (zeusm.LevelZeroError, zm.USMAllocationError) as error:
                print(error)
        """,
        XE_SIM_STOP="lost:1",
    )
    addresses = ["(0000:03:00.0)"] * 3 + ["(0000:08:00.0)"]
    lines = out.splitlines()
    assert len(lines) == 4
    assert all(address in line for address, line in zip(addresses, lines, strict=True)), out
