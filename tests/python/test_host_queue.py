"""Host memory on any device of a context: consumers of DLPack take the queue from the pointer, and SYCL reports the context's
first device for that. Devices last for a process, so all programs run in processes of their own."""

import pytest

pytest.importorskip("dpnp")

PRELUDE = """
import warnings
import sys
import numpy as np
import zeusm
import zeusm.memory as zm
import dpctl
warnings.simplefilter("ignore")  # dpnp 0.15 raises deprecation warnings of its own.
try:
    import dpnp.tensor as tensor
except ImportError:
    import dpctl.tensor as tensor

device, usm_type = sys.argv[1:]
N, TURNS, ROUNDS = 1 << 18, 40, 2
array = zeusm.asarray(np.zeros(N, "i4"), usm_type=usm_type, device=device)
"""

READS = """
other = zm.as_usm_memory(array.base)

def get_async():
    got = np.empty(N, "i4")
    array.base.copy_to_host_async(got).wait()
    return got

reads = {
    "copy_to_host": lambda: array.copy_to_host(),
    "tobytes": lambda: np.frombuffer(array.base.tobytes(), "i4"),
    "copy_to_host_async": get_async,
    "last": lambda: int(array[-1]),
    "copy": lambda: zeusm.asarray(array, copy=True).copy_to_host(),
    "other": lambda: np.frombuffer(other.tobytes(), "i4"),
}
if usm_type != "device":
    reads["memoryview"] = lambda: np.array(memoryview(array))
    reads["asarray"] = lambda: np.asarray(array).copy()
for name, read in reads.items():
    for _ in range(ROUNDS):
        array.copy_from_host(np.zeros(N, "i4"))
        for _ in range(TURNS):
            tensor.add(x, 1, out=x)
        got = read()
        assert np.all(got == TURNS), name
"""

WRITES = """
sevens = np.full(N, 0x07070707, "i4")

def assign():
    array[:] = sevens

writes = {
    "copy_from_host": lambda: array.copy_from_host(sevens),
    "copy_from_host_async": lambda: array.base.copy_from_host_async(sevens).wait(),
    "memset": lambda: array.base.memset(7),
    "memset_async": lambda: array.base.memset_async(7).wait(),
    "assign": assign,
}
for name, write in writes.items():
    for _ in range(ROUNDS):
        for _ in range(TURNS):
            tensor.add(x, 1, out=x)
        write()
        x.sycl_queue.wait()
        assert (array.copy_to_host() == sevens).all(), name
"""


@pytest.mark.parametrize(
    ("device", "devices"),
    [
        ("level_zero:gpu:0", "1"),
        pytest.param("level_zero:gpu:1", "2", marks=pytest.mark.once),
    ],
)
def test_accesses_come_after_the_work_of_a_dlpack_consumer(fresh, usm_type, device, devices):
    program = PRELUDE + "x = tensor.from_dlpack(array)\n" + READS + WRITES
    fresh(program, device, usm_type, env={"ZEUSM_CPU_DEVICES": devices})


@pytest.mark.parametrize("engines", ["device", pytest.param("queue", marks=pytest.mark.once)])
def test_accesses_to_memory_of_another_queue_than_the_consumers(fresh, usm_type, engines):
    """DLPack has no queue, so the consumer takes the shared one."""
    own = """
queue = dpctl.SyclQueue(array.sycl_context, array.sycl_device)
array = zeusm.asarray(array, queue=queue, copy=True)
assert array.sycl_queue == queue
x = tensor.from_dlpack(array)
"""
    program = PRELUDE + own + READS + WRITES
    fresh(program, "level_zero:gpu:0", usm_type, env={"ZEUSM_CPU_ENGINES": engines})


def test_accesses_to_imported_host_memory(fresh):
    """The first consumer of the peer's array is zeusm, and the second one the peer itself."""
    program = """
queue = dpctl.SyclDevice(device)
theirs = tensor.zeros(N, dtype="i4", usm_type=usm_type, device=queue)
array = zeusm.from_dlpack(theirs)
x = tensor.from_dlpack(theirs)
"""
    fresh(PRELUDE + program + READS, "level_zero:gpu:1", "host", env={"ZEUSM_CPU_DEVICES": "2"})
