"""How SYCL uses the CPU runtime: the kind of command lists, the order that it relies on, and waits beside other threads."""

import pytest

pytest.importorskip("dpnp")

# Counts the command lists that are created.
COUNTS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int regular, immediate;

int zeCommandListCreate(void *context, void *device, const void *desc, void **list)
{
    regular++;
    return ((int (*)(void *, void *, const void *, void **))dlsym(RTLD_NEXT, "zeCommandListCreate"))(context, device, desc,
                                                                                                  list);
}

int zeCommandListCreateImmediate(void *context, void *device, const void *desc, void **list)
{
    immediate++;
    return ((int (*)(void *, void *, const void *, void **))dlsym(RTLD_NEXT, "zeCommandListCreateImmediate"))(
        context, device, desc, list);
}
"""

PROGRAM = """
    import ctypes, os, zeusm
    import dpctl, dpnp

    library = ctypes.CDLL(os.environ["ZEUSM_RUNTIME"])
    counts = [ctypes.c_int.in_dll(library, name) for name in ("regular", "immediate")]
    before = [count.value for count in counts]
    queue = dpctl.SyclQueue("level_zero:gpu")
    array = dpnp.full(1000, 3, dtype="i4", sycl_queue=queue)
    assert (array + array).asnumpy().tolist() == [6] * 1000
    regular, immediate = (count.value - old for count, old in zip(counts, before))
    assert immediate > 0 and (regular > 0) == {is_regular}, (regular, immediate)
"""

FIRST_ADAPTER, SECOND_ADAPTER = ({"SYCL_UR_USE_LEVEL_ZERO_V2": number} for number in "01")
both_adapters = pytest.mark.parametrize(
    "adapter", [FIRST_ADAPTER, SECOND_ADAPTER], ids=["first adapter", "second adapter"]
)


@pytest.mark.parametrize(
    ("variables", "is_regular"),
    [
        ({}, False),
        (FIRST_ADAPTER, False),
        ({"ZEUSM_CPU_TILES": "2"}, False),
        (FIRST_ADAPTER | {"UR_L0_USE_IMMEDIATE_COMMANDLISTS": "0"}, True),
    ],
    ids=["default", "first adapter", "tiles", "batches"],
)
def test_sycl_uses_immediate_command_lists(fresh, stand_in, variables, is_regular):
    library = {"ZEUSM_RUNTIME": str(stand_in(COUNTS))}
    fresh(PROGRAM.format(is_regular=is_regular), env=library | variables)


@both_adapters
@pytest.mark.parametrize("devices", [("gpu:0", "cpu:0"), ("cpu:0", "gpu:0"), ("gpu:0", "gpu:1")])
def test_an_in_order_queue_keeps_its_order_while_another_device_waits_for_it(
    fresh, devices, adapter
):
    """SYCL's first adapter then has the second copy wait for a barrier in another list only."""
    fresh(
        f"""
        import zeusm.memory as zm
        import dpctl.memory

        own, other = (dpctl.SyclDevice(f"level_zero:{{name}}") for name in {devices})
        context = dpctl.SyclContext([own, other])
        queue, beside = (dpctl.SyclQueue(context, it, property="in_order") for it in (own, other))
        size = 4096
        memories = [zm.MemoryUSMHost(size, queue=queue) for _ in range(4)]
        for value, memory in enumerate(memories):
            memory.memset(value)
        memories += [zm.MemoryUSMDevice(1 << 27, queue=beside) for _ in range(2)]
        target, one, two, sink, *large = map(dpctl.memory.as_usm_memory, memories)
        for _ in range(10):
            memories[0].memset(0)
            first = queue.memcpy_async(sink, one, size)
            slow = beside.memcpy_async(*large, 1 << 27)
            queue.memcpy_async(target, one, size, [slow])
            beside.memcpy_async(sink, two, size, [first])
            queue.memcpy_async(target, two, size)
            queue.wait()
            beside.wait()
            assert memories[0].tobytes() == bytes([2]) * size
        """,
        env={"ZEUSM_CPU_DEVICES": "2+cpu"} | adapter,
    )


@both_adapters
@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_a_command_submitted_while_another_thread_waits_is_waited_for(fresh, device, adapter):
    """When the other wait ends, SYCL's first adapter takes it for complete, unless a variable says otherwise."""
    fresh(
        f"""
        import threading, time
        import zeusm.memory as zm
        import dpctl.memory

        queue = dpctl.SyclQueue("level_zero:{device}")
        brief, long = 1 << 25, 1 << 27
        memories = [zm.MemoryUSMHost(long, queue=queue) for _ in range(4)]
        for value, memory in enumerate(memories):
            memory.memset(value)
        target, other, source, two = map(dpctl.memory.as_usm_memory, memories)
        end = memoryview(memories[0])[-1:]
        for turn in range(40):
            memories[0].memset(0)
            submitted = threading.Event()

            def waits():
                queue.memcpy_async(other, two, brief)
                submitted.set()
                queue.wait()

            thread = threading.Thread(target=waits)
            thread.start()
            submitted.wait()
            # The thread begins to wait, and its copy does not end yet.
            time.sleep(turn % 8 / 1000)
            event = queue.memcpy_async(target, source, long)
            thread.join()
            event.wait()
            assert end == b"\\2"
        """,
        env={"ZEUSM_CPU_DEVICES": "1+cpu"} | adapter,
    )
