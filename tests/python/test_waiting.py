"""Accesses to memory wait for its own SYCL queue, and queues are told apart."""

import gc

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm

dpctl = pytest.importorskip("dpctl")
dpctl_memory = pytest.importorskip("dpctl.memory")

SIZE = 1 << 20
READS = {
    "memoryview": lambda memory: np.asarray(memory).copy(),
    "copy_to_host": lambda memory: memory.copy_to_host(),
    "tobytes": lambda memory: np.frombuffer(memory.tobytes(), np.uint8),
    "a part": lambda memory: np.concatenate(
        [memory[:64].copy_to_host(), memory[64:].copy_to_host()]
    ),
    "an array": lambda memory: np.asarray(memory.view("uint8")).copy(),
    "a copy": lambda memory: zm.MemoryUSMHost(memory, copy=True).copy_to_host(),
}


@pytest.fixture(params=["out of order", "in order"])
def queue(request):
    properties = {"property": "in_order"} if request.param == "in order" else {}
    return dpctl.SyclQueue("level_zero:gpu", **properties)


def slowly(queue, destination, source, elsewhere=None):
    """Copies on the queue behind work that takes a while, and returns at once.

    With `elsewhere`, that is behind a host task of another queue: SYCL itself has the copy wait, and no driver knows.
    """
    before = [dpctl_memory.MemoryUSMDevice(64 << 20, queue=queue) for _ in range(2)]
    first = (elsewhere or queue).memcpy_async(before[0], before[1], 64 << 20)
    if elsewhere:
        first = elsewhere._submit_keep_args_alive((before,), [first])
    return queue.memcpy_async(destination, source, destination.nbytes, [first]), before


@pytest.fixture
def memory(queue):
    memory = zm.MemoryUSMShared(SIZE, queue=queue)
    memory.memset(0)
    return memory


@pytest.fixture
def source(queue):
    """dpctl's memory on the same queue, with what the tests read in the end."""
    source = dpctl_memory.MemoryUSMShared(SIZE, queue=queue)
    source.memset(7)
    return source


@pytest.mark.parametrize("read", READS.values(), ids=READS)
class TestResults:
    def test_of_memory_that_dpctl_knows(self, queue, memory, source, read):
        in_flight = slowly(queue, dpctl_memory.as_usm_memory(memory), source)
        assert (read(memory) == 7).all()
        del in_flight

    def test_of_a_part_that_dpctl_knows(self, queue, memory, source, read):
        in_flight = slowly(queue, dpctl_memory.as_usm_memory(memory[:]), source)
        assert (read(memory) == 7).all()
        del in_flight

    def test_that_wait_for_a_host_task(self, queue, memory, source, read):
        elsewhere = dpctl.SyclQueue("level_zero:gpu")
        in_flight = slowly(queue, dpctl_memory.as_usm_memory(memory), source, elsewhere)
        assert (read(memory) == 7).all()
        del in_flight

    def test_of_memory_lent_as_a_buffer(self, queue, memory, source, read):
        in_flight = slowly(queue, memory, source)
        assert (read(memory) == 7).all()
        del in_flight

    def test_of_dpnp_kernels(self, queue, read):
        dpnp = pytest.importorskip("dpnp")
        array = dpnp.full(SIZE, 2, dtype="uint8", usm_type="shared", sycl_queue=queue)
        memory = zm.as_usm_memory(array)
        for _ in range(5):
            array += 1
        assert (read(memory) == 7).all()


class TestQueues:
    def test_many_are_told_apart(self):
        """More of them than zeusm remembers, in turns, and others where they were."""
        for _ in range(3):
            queues = [dpctl.SyclQueue("level_zero:gpu") for _ in range(9)]
            for queue in queues + queues[::-1]:
                assert zm.MemoryUSMShared(64, queue=queue).sycl_queue is queue
            del queues
            gc.collect()

    def test_of_other_contexts_are_told_apart(self):
        device = dpctl.SyclDevice("level_zero:gpu")
        for _ in range(12):
            context = dpctl.SyclContext(device)
            queue = dpctl.SyclQueue(context, device)
            memory = zm.MemoryUSMShared(64, queue=queue)
            assert memory.sycl_context == context
            assert memory.get_usm_type(context) == "shared"
            del context, queue, memory

    def test_memory_may_be_named_by_another_queue_of_its_context(self):
        first, second = (dpctl.SyclQueue("level_zero:gpu") for _ in range(2))
        memory = zm.MemoryUSMShared(64, queue=first)
        same = zm.MemoryUSMShared(memory, queue=second)
        assert memory.sycl_queue is first
        assert same.sycl_queue is second

    def test_memory_without_one_gets_one_and_keeps_it(self):
        memory = zm.MemoryUSMShared(64, queue=dpctl.SyclQueue("level_zero:gpu").sycl_context)
        queue = memory.sycl_queue
        assert memory.sycl_queue is queue
        assert memory[:32].sycl_queue is queue
        assert zeusm.as_usm_array(memory).sycl_context == queue.sycl_context
