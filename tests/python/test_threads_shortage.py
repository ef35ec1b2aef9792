"""No thread can be started for work that waits for the host: a clear error, and nothing is in flight."""

import pytest
from system_calls import FILTER

pytestmark = pytest.mark.once

PROGRAM = (
    """
    import faulthandler, threading, dpctl, zeusm, zeusm.memory as zm

    faulthandler.dump_traceback_later(60, exit=True)
    CLONE, CLONE3, EAGAIN = 56, 435, 11
    queue = dpctl.SyclQueue("level_zero:gpu")
    other = dpctl.SyclQueue(dpctl.SyclContext([queue.sycl_device]), queue.sycl_device)
    large = zm.MemoryUSMDevice(256 << 20, queue=queue)
    memory = zm.MemoryUSMShared(64, queue=other)
    memory.memset(1)
    """
    + FILTER
    + """
    def refused():
        # An event of another context: the host waits for it.
        for value in range(5):
            event = large.memset_async(value)
        refuse(CLONE3, EAGAIN)
        refuse(CLONE, EAGAIN)
        try:
            memory.memset_async(2, depends=event)
        except zeusm.LevelZeroError as error:
            answers.append((str(error), event.is_complete))

    answers = []
    thread = threading.Thread(target=refused)
    thread.start()
    thread.join()
    [(message, was_complete)] = answers
    assert "no thread can be started for work that waits for the host" in message, message
    assert "Resource temporarily unavailable" in message, message
    assert "ulimit -u" in message, message
    assert not was_complete
    # Nothing is in flight in that context, and the next call tries again.
    assert bytes(memory) == bytes([1]) * 64
    assert memory.memset_async(3, depends=large.memset_async()).wait()
    assert bytes(memory) == bytes([3]) * 64
    """
)


def test_an_operation_that_needs_a_thread_is_refused(fresh):
    # SYCL's contexts of all devices of a driver share one of Level Zero, so there are two devices.
    fresh(PROGRAM, env={"ZEUSM_CPU_DEVICES": "2"})
