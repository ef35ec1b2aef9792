"""Accesses to memory wait for its own SYCL queue, and different queues are never confused."""

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
    """Submits a copy behind long operations of the queue, and returns without a wait.

    With `elsewhere`, the copy depends on a host task of another queue: SYCL defers its submission to the driver.
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
    """dpctl's memory on the same queue, with the bytes that the tests finally read."""
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


def test_a_consumer_may_synchronise_itself(queue):
    """With the DLPack stream -1, an export does not wait for the memory's queue."""
    memory = zm.MemoryUSMShared(SIZE, queue=queue)
    source = dpctl_memory.MemoryUSMShared(SIZE, queue=queue)
    complete = dpctl.event_status_type.complete

    def returns_before_the_work(exporter):
        event, before = slowly(queue, dpctl_memory.as_usm_memory(memory), source)
        exporter.__dlpack__(stream=-1)
        is_before = event.execution_status != complete
        memory.__dlpack__()
        assert event.execution_status == complete
        del before
        return is_before

    # On a loaded machine, the work may be complete before the query.
    for exporter in (memory, memory.view("u1")):
        assert any(returns_before_the_work(exporter) for _ in range(20))


class TestQueues:
    def test_many_are_told_apart(self):
        """More queues than zeusm caches are used in turns, and new ones are created at the addresses of freed ones."""
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


BEHIND_A_HOST_TASK = """
import faulthandler
import sys
import threading

import dpctl
import dpctl.memory
import zeusm.memory as zm

faulthandler.dump_traceback_later(60, exit=True)
properties = {"property": "in_order"} if sys.argv[2] == "in order" else {}
queue = dpctl.SyclQueue("level_zero:gpu", **properties)
work, memory = zm.MemoryUSMDevice(1 << 28, queue=queue), zm.MemoryUSMShared(64, queue=queue)
a, b = (dpctl.memory.MemoryUSMShared(64, queue=queue) for _ in range(2))
queue.memcpy_async(a, b, 64).wait()
for value in range(4):
    first = work.memset_async(value)
# SYCL's barrier waits for the host task, which needs the GIL to release the objects that it keeps.
kept = queue._submit_keep_args_alive((a, b), [first.sycl_event])
barrier = queue.submit_barrier([kept])
memory.__sycl_usm_array_interface__
ways = {
    "named": lambda: memory.memset_async(1, depends=barrier).wait(),
    "asynchronous": lambda: memory.memset_async(1).wait(),
    "synchronous": lambda: memory.memset(1),
}
thread = threading.Thread(target=ways[sys.argv[1]])
thread.start()
thread.join(0.02)
for _ in range(50):  # All with the GIL held: a command, one that comes after a host task, and a host task.
    queue.memcpy_async(a, b, 64)
    queue.memcpy_async(a, b, 64, [kept])
    queue._submit_keep_args_alive((a, b), [])
thread.join()
assert bytes(memory) == b"\\1" * 64
"""


@pytest.mark.parametrize("order", ["out of order", "in order"])
@pytest.mark.parametrize("way", ["named", "asynchronous", "synchronous"])
@pytest.mark.parametrize("adapter", ["0", "1"])
def test_a_wait_behind_a_host_task_lets_others_submit(fresh, way, order, adapter):
    fresh(BEHIND_A_HOST_TASK, way, order, env={"SYCL_UR_USE_LEVEL_ZERO_V2": adapter})


def test_threads_query_a_queue_without_the_gil(fresh):
    """The query takes a lock that a thread holds which waits for SYCL's graph, and SYCL's wait holds that for a host task."""
    fresh("""
import faulthandler
import threading
import time

import dpctl
import dpctl.memory as dm
import zeusm.memory as zm

faulthandler.dump_traceback_later(60, exit=True)
queue = dpctl.SyclQueue("level_zero:gpu", property="in_order")
work = [dm.MemoryUSMDevice(1 << 27, queue=queue) for _ in range(2)]
a, b = (dm.MemoryUSMShared(64, queue=queue) for _ in range(2))
memory = zm.MemoryUSMShared(64, queue=queue)
memory.__sycl_usm_array_interface__
queue.memcpy_async(*work, 1 << 27).wait()


def use():
    for value in range(3):
        memory.memset_async(value).wait()


for _ in range(10):
    first = [queue.memcpy_async(*work, 1 << 27) for _ in range(3)]
    kept = queue._submit_keep_args_alive((a, b), first)
    barrier = queue.submit_barrier([kept])
    threads = [threading.Thread(target=target) for target in (barrier.wait, use, use, use)]
    for thread in threads:
        thread.start()
        time.sleep(0.003)
    for thread in threads:
        thread.join()
    del first, kept, barrier
assert bytes(memory) == b"\\2" * 64
""")


@pytest.mark.parametrize("take", [zeusm.from_dlpack, zeusm.as_usm_array])
def test_results_of_dpnp_need_no_wait(usm_type, take):
    """The rule of docs/async.md: dpnp returns before its kernels are complete, and zeusm waits for them."""
    dpnp = pytest.importorskip("dpnp")
    numbers = dpnp.zeros(1 << 20, dtype="f4", usm_type=usm_type)
    for turn in range(30):
        numbers += 1
        assert take(numbers * 2)[-3:].copy_to_host().tolist() == [2.0 * (turn + 1)] * 3
