"""A device that is lost while operations are in flight: every step reports it, the process and its host memory go on."""

import pytest
from on_the_simulator import MACHINE, MOVING

# A program defines `keep`, host memory with known bytes, and `steps`, which run after the loss of the device.
FRAME = """
    import zeusm
    import zeusm.memory as zm

    SIZE = 1 << 20
    keep = zm.MemoryUSMHost(SIZE)
    memoryview(keep)[:] = bytes([7]) * SIZE
    device = zm.MemoryUSMDevice(SIZE)
    {begin}
    def step():
        {step}

    for _ in range(3):
        try:
            step()
            print("none")
        except (zeusm.LevelZeroError, zm.USMAllocationError, zm.IPCError, RuntimeError) as error:
            print("lost" if "DEVICE_LOST" in str(error) else error)
    assert bytes(memoryview(keep)) == bytes([7]) * SIZE
"""
PROGRAMS = {
    "a blocking copy": ("", "device.copy_from_device(keep)"),
    # The driver copies smaller plain memory to a context of two GPUs by the processor.
    "a copy of plain memory": (
        "device = zm.MemoryUSMDevice(8 * SIZE)",
        "device.copy_from_host(bytes(8 * SIZE))",
    ),
    "a fill": ("", "device.memset(1)"),
    "an event": ("event = device.copy_from_device_async(keep)", "event.wait()"),
    "events that wait for it": (
        "first = device.copy_from_device_async(keep)\n"
        "    other = zm.MemoryUSMDevice(SIZE)\n"
        "    second = other.copy_from_device_async(device, depends=[first])",
        "second.wait()",
    ),
    "a copy after it": ("event = device.copy_from_device_async(keep)", "device.copy_to_host()"),
    "opened memory": (
        "opened = zm.IPCMemoryHandle.open(device.ipc_handle())\n"
        "    event = opened.copy_from_device_async(keep)",
        "opened.copy_to_host()",
    ),
    "the exporter of opened memory": (
        "opened = zm.IPCMemoryHandle.open(device.ipc_handle())\n"
        "    event = opened.copy_from_device_async(keep)",
        "device.copy_to_host()",
    ),
}


# With several GPUs, memory of the same process is not opened.
WITH_OWN = ["opened memory", "the exporter of opened memory"]
NAMES = [name for name in PROGRAMS if MACHINE != "bmg2" or name not in WITH_OWN]
MAKES = ["device", *["zm.IPCMemoryHandle.open(device.ipc_handle())"] * (MACHINE != "bmg2")]


@pytest.mark.parametrize("stop", ["fault", "lost"])
@pytest.mark.parametrize("name", NAMES)
def test_every_way_to_wait_reports_it(program, name, stop):
    begin, step = PROGRAMS[name]
    out = program(FRAME.format(begin=begin, step=step), XE_SIM_STOP=f"{stop}:1")
    assert out.splitlines() == ["lost"] * 3


BLOCK = """
    import time
    import zeusm
    import zeusm.memory as zm

    device = zm.MemoryUSMDevice(1 << 20)
    source = zm.MemoryUSMHost(1 << 20)
    try:
        with {make} as memory:
            event = memory.copy_from_device_async(source)
            {step}
    except zeusm.LevelZeroError as error:
        print("lost" if "DEVICE_LOST" in str(error) else error)
"""


@pytest.mark.parametrize("stop", ["fault", "lost"])
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("step", ["event.wait()", "memory.copy_to_host()", "time.sleep(1)"])
def test_a_block_that_loses_it(program, make, step, stop):
    """The loss is not hidden by the error that the memory cannot be closed."""
    out = program(BLOCK.format(make=make, step=step), XE_SIM_STOP=f"{stop}:1")
    assert out == "lost\n"


SYCL = """
    import numpy
    import zeusm
    import zeusm.memory as zm

    import dpctl
    import dpctl.memory

    queue = dpctl.SyclQueue()
    shared, host = (make(1 << 20, queue=queue) for make in (zm.MemoryUSMShared, zm.MemoryUSMHost))
    memoryview(host)[:2] = b"ab"
    source, target = (dpctl.memory.MemoryUSMDevice(1 << 20, queue=queue) for _ in "ab")
    taken = dpctl.memory.as_usm_memory(shared)  # SYCL's work may use it.
    queue.memcpy_async(target, source, 1 << 20)
    view = zm.as_usm_memory(target)
    for step in (
        lambda: numpy.asarray(shared),
        lambda: memoryview(shared),
        lambda: shared.copy_to_host(),
        lambda: view.copy_to_host(),
        lambda: zm.MemoryUSMDevice(4096, queue=queue).memset(1),
    ):
        try:
            print("none", step())
        except (zeusm.LevelZeroError, zm.USMAllocationError, RuntimeError):
            print("reported")
    print(bytes(memoryview(host)[:2]))
"""


@pytest.mark.parametrize("stop", ["fault", "lost"])
def test_sycl_work_that_loses_it(program, stop):
    """SYCL's error comes out of each of zeusm's waits for the queue. NumPy does not turn it into an array of one object."""
    out = program(SYCL, XE_SIM_STOP=f"{stop}:1")
    assert out.splitlines() == ["reported"] * 5 + [repr(b"ab")]


POLLED = """
    import time
    import zeusm
    import zeusm.memory as zm

    memory = zm.MemoryUSMDevice(1 << 20)
    event = memory.memset_async(1)
    try:
        while not {poll}:
            time.sleep(0.001)
    except zeusm.LevelZeroError as error:
        print("lost" if "DEVICE_LOST" in str(error) else error)
"""


@pytest.mark.parametrize("stop", ["hang", "fault", "lost"])
@pytest.mark.parametrize("poll", ["event.is_complete", "event.wait(0)", "event.wait(0.005)"])
def test_a_program_that_polls_sees_it(program, poll, stop):
    """A query of the event alone never tells it."""
    assert program(POLLED.format(poll=poll), XE_SIM_STOP=f"{stop}:1") == "lost\n"


DEPENDENT_ON_SYCL = """
    import dpctl
    import dpctl.memory as dm
    import numpy
    import zeusm
    import zeusm.memory as zm

    SIZE = 64 << 20
    queue = dpctl.SyclQueue()
    source, target = (dm.MemoryUSMDevice(SIZE, queue=queue) for _ in "ab")
    memory = zm.MemoryUSMShared(4096, queue=queue)
    event = memory.memset_async(1, depends=queue.memcpy_async(target, source, SIZE))
    try:
        print("none", {step})
    except (zeusm.LevelZeroError, RuntimeError) as error:
        print("lost" if "DEVICE_LOST" in str(error) else error)
"""


@pytest.mark.parametrize("stop", ["hang", "lost"])
@pytest.mark.parametrize(
    "step",
    # The host may access shared memory of a lost device if it does not migrate.
    ["event.wait()", "memory.tobytes()", *["numpy.asarray(memory)"] * (MACHINE in MOVING)],
)
def test_an_operation_that_waits_for_lost_work_of_sycl(program, step, stop):
    """The host waits for SYCL's events, whose status never says that the device is lost. Neither this nor the exit ended."""
    out = program(DEPENDENT_ON_SYCL.format(step=step), XE_SIM_STOP=f"{stop}:1")
    assert out == "lost\n"


@pytest.mark.parametrize("stop", ["hang", "lost"])
def test_an_exit_with_an_operation_that_waits_for_lost_work_of_sycl(program, stop):
    out = program(DEPENDENT_ON_SYCL.format(step="memory.nbytes"), XE_SIM_STOP=f"{stop}:1")
    assert out == "none 4096\n"


# A device that the kernel has given up, or that is unplugged, refuses all requests. A thread of the driver soon asks for the
# state of a queue, and aborts the process when the request fails. The abort message names this source file.
DIES = "drm_neo.cpp"


@pytest.mark.parametrize("stop", ["wedged", "gone"])
def test_the_driver_ends_the_process_on_a_device_that_refuses_all_requests(program, stop):
    begin, step = PROGRAMS["a blocking copy"]
    with pytest.raises(AssertionError, match=DIES):
        program(FRAME.format(begin=begin, step=step), XE_SIM_STOP=f"{stop}:1")
