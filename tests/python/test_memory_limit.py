"""`set_memory_limit`: over all pools and unpooled allocations of a device in the process."""

from concurrent.futures import ThreadPoolExecutor

import pytest

# Each limit is for a whole process, so the programs run in their own.
START = """
import random, sys, threading
import zeusm, zeusm.memory as zm

CLASSES = zm.MemoryUSMDevice, zm.MemoryUSMShared, zm.MemoryUSMHost
MIB = 1 << 20


def left():
    return zm.mem_get_info()[0]


def refusal(size, **options):
    try:
        zm.MemoryUSMDevice(size, **options)
    except zm.USMAllocationError as error:
        return str(error)
"""


@pytest.fixture
def run(fresh):
    return lambda program, *arguments, **options: fresh(START + program, *arguments, **options)


@pytest.mark.parametrize("discrete", ["0", "1"])
def test_random_allocations_stay_below_the_limit(run, discrete):
    """Several pools, the default ones, and none; after all are freed, one block takes nearly all that the limit leaves."""
    run(
        """
limit = 96 * MIB
zm.set_memory_limit(None, limit)
pools = {kind: [zm.MemoryPool(kind) for _ in range(2)] for kind in ("device", "shared")}
choose = random.Random(7)
live, held, refused = [], 0, 0
for _ in range(3000):
    if live and choose.random() < 0.45:
        held -= live.pop(choose.randrange(len(live))).nbytes
        continue
    size = 1 << choose.randrange(8, 25)
    kind = choose.choice(("device", "shared"))
    memory_class = zm.MemoryUSMDevice if kind == "device" else zm.MemoryUSMShared
    pool = choose.choice([True, False, *pools[kind]])
    try:
        live.append(memory_class(size, pool=pool))
    except zm.USMAllocationError as error:
        refused += 1
        assert "set_memory_limit" in str(error), error
        assert held + size > limit / 2, (held, size)  # What pools cannot return, and roundings.
        continue
    held += size
    assert held <= limit
    assert left() <= limit - held
assert refused > 10 and live
live.clear()
zm.MemoryUSMDevice(limit - MIB)
""",
        env={"ZEUSM_CPU_DISCRETE": discrete},
    )


def test_threads_do_not_exceed_the_limit(run):
    run("""
limit = 40 * MIB  # Less than two of the largest blocks, so that a thread that runs alone is refused, too.
zm.set_memory_limit(None, limit)
sys.setswitchinterval(1e-5)
held, most, refused, lock = 0, 0, 0, threading.Lock()


def work(number):
    global held, most, refused
    choose, kept = random.Random(number), []
    for _ in range(300):
        size = choose.randrange(1, 24 * MIB)
        if len(kept) == 2:
            with lock:  # Before the memory is free, so that `held` is at most what is.
                held -= kept[0].nbytes
            kept.pop(0)
        try:
            memory = CLASSES[number % 2](size, pool=bool(choose.randrange(2)))
        except zm.USMAllocationError as error:
            assert "set_memory_limit" in str(error), error
            refused += 1
            continue
        with lock:
            held += size
            most = max(most, held)
        kept.append(memory)
    with lock:
        held -= sum(memory.nbytes for memory in kept)


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert refused and held == 0 and 24 * MIB < most <= limit, (refused, held, most)
zm.MemoryUSMDevice(limit - MIB)
""")


def test_the_error_says_what_to_do(run):
    run("""
zm.set_memory_limit(None, 10 * MIB)
kept = zm.MemoryUSMShared(4 * MIB, pool=False)
message = refusal(7 * MIB, pool=False)
for part in (
    f"cannot allocate 7 MiB ({7 * MIB} bytes) of device USM",
    str(kept.sycl_device.name),
    f"10 MiB ({10 * MIB} bytes), of which this process holds 4 MiB ({4 * MIB} bytes)",
    "set_memory_limit",
    "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
):
    assert part in message, (part, message)
# What to do comes last, also behind who holds the most.
with zm.record_history():
    hoard = zm.MemoryUSMShared(5 * MIB, pool=False)
    *facts, holder, remedy = refusal(7 * MIB, pool=False).splitlines()
assert "5 MiB (5242880 bytes) in 1 blocks" in holder
assert remedy.startswith("  free memory") and remedy not in facts
del hoard
# Below what is held, and without a limit.
zm.set_memory_limit(None, 0)
assert left() == 0 and refusal(1, pool=False) and refusal(1)
kept.memset(1)
zm.set_memory_limit()
assert refusal(7 * MIB) is None
""")


def test_a_fraction_of_the_memory(run):
    run("""
memory = zm.snapshot()["devices"][0]["total"]
zm.set_memory_limit("level_zero:gpu:0", 0.001)
assert left() <= memory // 1000
assert refusal(memory // 999)
zm.set_memory_limit(None, 1.0)
assert refusal(64 * MIB) is None
for wrong in "1", [0.5]:
    try:
        zm.set_memory_limit(None, wrong)
    except TypeError as error:
        assert "unless it is a float" in str(error)
    else:
        raise AssertionError(wrong)
""")


def test_another_device_has_another_limit(run):
    run(
        """
zeusm.set_cpu_devices(2)
zm.set_memory_limit("level_zero:gpu:1", MIB)
assert refusal(2 * MIB, queue="level_zero:gpu:1")
assert refusal(2 * MIB, queue="level_zero:gpu:0") is None
""",
        env={"ZEUSM_RUNTIME": "cpu"},
    )


def test_a_child_inherits_the_limit_and_what_is_held(run):
    run("""
import os

kept = zm.MemoryUSMDevice(8 * MIB, pool=False)
zm.set_memory_limit(None, 16 * MIB)
child = os.fork()
if child == 0:
    os._exit(0 if refusal(9 * MIB) and not refusal(7 * MIB, pool=False) else 1)
assert os.waitpid(child, 0)[1] == 0
del kept
assert not refusal(15 * MIB)
""")


def test_device_memory_beyond_a_discrete_device_is_refused_without_the_driver(run):
    """The sum counts, not only each request: a discrete GPU's device memory is not swapped."""
    run(
        """
total = zm.snapshot()["devices"][0]["total"]
kept = []
message = None
while message is None:
    message = refusal(total // 4, pool=False) if len(kept) > 3 else None
    if message is None:
        try:
            kept.append(zm.MemoryUSMDevice(total // 4, pool=False))
        except zm.USMAllocationError as error:
            message = str(error)
assert len(kept) <= 4, len(kept)
""",
        env={"ZEUSM_RUNTIME": "cpu", "ZEUSM_CPU_DISCRETE": "1"},
    )


OVERCOMMITMENT = """
import sys
import dpnp

choose = random.Random(int(sys.argv[1]))
zm.set_memory_limit(None, 32 * MIB)
pool = zm.MemoryPool("device")
held, refused = [], 0
for request in range(500):
    size, value = choose.choice([64, MIB, choose.randrange(1, 12 * MIB)]), request % 127
    try:
        memory = zm.MemoryUSMDevice(size, pool=choose.choice([True, False, pool]))
    except zm.USMAllocationError as error:
        assert "set_memory_limit" in str(error), error
        refused += 1
        for _ in range(choose.randrange(1 + len(held))):
            held.pop(choose.randrange(len(held)))
        continue
    memory.memset_async(value)
    array = dpnp.from_dlpack(memory.view("u1"))
    array += 1
    if held:
        source, before = choose.choice(held)
        part = min(size, source.nbytes)
        memory[:part].copy_from_device_async(source[:part])
        assert memory[:part].tobytes() == bytes([before]) * part
        memory.memset_async(value + 1)
    held.append((memory, value + 1))
for memory, value in held:
    assert memory.tobytes() == bytes([value]) * memory.nbytes
assert refused > 10
"""


@pytest.mark.once
def test_two_processes_request_too_much_beside_kernels_and_copies(run):
    """On a discrete GPU it ends in errors, too (`tests/intel/test_overcommitment.py`)."""
    with ThreadPoolExecutor() as threads:
        discrete = {"ZEUSM_CPU_DISCRETE": "1"}
        ends = [threads.submit(run, OVERCOMMITMENT, number, env=discrete) for number in range(2)]
        for end in ends:
            end.result()


@pytest.mark.parametrize("limit", [-1, -0.1, 1.5, float("nan"), "1 GiB", [1]])
def test_wrong_limits_are_refused(limit):
    import zeusm.memory as zm

    with pytest.raises((ValueError, TypeError), match="limit"):
        zm.set_memory_limit(None, limit)
