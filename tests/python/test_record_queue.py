"""`record_queue`: memory that work of another queue uses is freed when that is complete."""

import time

import dpctl
import dpctl.memory
import pytest
import zeusm.memory as zm


def test_memory_returns_to_the_pool_after_the_work(usm_type, memory_class):
    dpnp = pytest.importorskip("dpnp")
    pool = zm.MemoryPool(usm_type)
    queue = dpctl.SyclQueue("level_zero:gpu", property="in_order")
    for is_shared in False, True:
        memory = memory_class(1 << 20, pool=pool)
        memory.record_queue(queue)
        memory.record_queue(queue)
        if is_shared:
            memory = memory[: 1 << 10]
        large = dpnp.ones(4_000_000, sycl_queue=queue)
        for _ in range(20):
            large += 1
        del memory
        end = time.monotonic() + 60
        while pool.used_bytes() and time.monotonic() < end:
            time.sleep(0.001)
        assert pool.used_bytes() == 0
        barrier = queue.submit_barrier()
        assert barrier.execution_status == dpctl.event_status_type.complete


def test_an_idle_queue_delays_nothing(usm_type, memory_class):
    pool = zm.MemoryPool(usm_type)
    memory = memory_class(64, pool=pool)
    queue = dpctl.SyclQueue("level_zero:gpu")
    memory.record_queue(queue)
    queue.wait()
    memory.close()
    end = time.monotonic() + 60
    while pool.used_bytes() and time.monotonic() < end:
        time.sleep(0.001)
    assert pool.used_bytes() == 0


def test_what_is_refused(memory_class):
    memory = memory_class(64)
    for wrong in 3, memory.sycl_context:
        with pytest.raises(TypeError, match="queue"):
            memory.record_queue(wrong)
    theirs = dpctl.memory.MemoryUSMShared(64)
    with pytest.raises(ValueError, match="another package"):
        zm.as_usm_memory(theirs).record_queue(dpctl.SyclQueue("level_zero:gpu"))
    memory.close()
    with pytest.raises(ValueError, match="closed"):
        memory.record_queue(dpctl.SyclQueue("level_zero:gpu"))
