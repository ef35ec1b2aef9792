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
