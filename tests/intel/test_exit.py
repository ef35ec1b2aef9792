"""The exit of the process, in which SYCL releases its kernels through the driver."""

import time

import pytest

# The driver is loaded before SYCL, and a SYCL context with a kernel in it is alive at the exit.
LOADED_FIRST = """
    import ctypes
    {load}
    import dpctl
    import dpnp.tensor as tensor

    device = dpctl.SyclDevice("level_zero:gpu")
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    tensor.ones(3, dtype="f4", sycl_queue=queue)
    queue.wait()
    {keep}
"""
KEEP = "ctypes.pythonapi.Py_IncRef(ctypes.py_object(queue))"


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_kernels_on_a_queue_that_zeusm_was_given(program, usm_type):
    program(
        f"""
        import zeusm
        import dpctl
        import dpnp.tensor as tensor

        device = dpctl.SyclDevice("level_zero:gpu")
        queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        array = zeusm.asarray([1, 2, 3], dtype="f4", usm_type={usm_type!r}, queue=queue)
        ones = tensor.ones(3, dtype="f4", sycl_queue=queue)
        tensor.add(ones, ones, out=tensor.asarray(array))
        array.copy_to_host()
        """
    )


def test_without_zeusm(program):
    """The defect that zeusm has to keep away from: not zeusm, but SYCL and the driver crash."""
    program(LOADED_FIRST.format(load="", keep=KEEP))
    load = 'ctypes.CDLL("libze_intel_gpu.so.1")'
    program(LOADED_FIRST.format(load=load, keep=""))
    with pytest.raises(AssertionError, match="exit -11"):
        program(LOADED_FIRST.format(load=load, keep=KEEP))


DAEMONS = """
    import random, threading, time
    import zeusm.memory as zm

    SIZE = 1 << 20

    def work():
        memory = [kind(SIZE) for kind in (zm.MemoryUSMDevice, zm.MemoryUSMShared, zm.MemoryUSMHost)]
        data = bytearray(SIZE)
        while True:
            one, other = random.choice(memory), random.choice(memory)
            {call}

    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(random.uniform(0.05, 0.25))
"""
CALLS = {
    "to the host": "one.copy_to_host(data)",
    "from the host": "one.copy_from_host(data)",
    "asynchronous": "one.copy_from_host_async(data)",
    "between memory": "one.copy_from_device(other)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_daemon_threads_are_in_calls_of_the_driver(program, call):
    """The driver destroys its objects at the exit. Without a wait for these calls, one program in ten crashed."""
    for _ in range(8):
        program(DAEMONS.format(call=call))


def test_daemon_threads_that_wait_for_each_other_do_not_delay_it(program):
    """One program in ten took five seconds more: some threads waited in calls for a submission, or for a drop of operands, of a
    thread that the exit had stopped.
    """
    for _ in range(24):
        out = program(
            """
            import threading, time
            import zeusm.memory as zm

            def work():
                memory = zm.MemoryUSMDevice(300_001)
                while True:
                    memory.memset_async(1)
                    memory.tobytes()

            for _ in range(6):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.5)
            print(time.time())
            """
        )
        assert time.time() - float(out) < 4
