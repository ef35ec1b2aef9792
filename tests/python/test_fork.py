"""Forks: a child uses new objects without restrictions and reads inherited ones, at any state of the parent."""

import os

import pytest

# The alarm terminates a child that deadlocks; its exit status shows the signal.
START = """
import os, signal, sys, threading, time, traceback
import numpy as np
import zeusm
import zeusm.memory as zm

CLASSES = zm.MemoryUSMDevice, zm.MemoryUSMShared, zm.MemoryUSMHost


def do_everything():
    for memory_class in CLASSES:
        memory = memory_class(1 << 20)
        memory.memset(3)
        assert memory.tobytes() == b"\\3" * (1 << 20)
        event = memory.copy_from_host_async(b"\\4" * (1 << 20))
        small = memory_class(4096)
        small.copy_from_device(memory[:4096])
        assert event.wait() and small.tobytes() == b"\\4" * 4096
        back = bytearray(4096)
        assert small.copy_to_host_async(back).wait() and back == b"\\4" * 4096


def in_child(check, seconds=60):
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            check()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def status(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

"""


@pytest.fixture
def run(fresh):
    def run(program, *arguments):
        return fresh(START + program, *arguments)

    return run


def test_what_was_in_flight_is_over_for_the_child(run):
    run("""
large = zm.MemoryUSMDevice(256 << 20)
inherited = zm.MemoryUSMDevice(4096)
inherited.memset(7)
for value in range(8):
    event = large.memset_async(value)
begin = time.monotonic()

def check():
    global large, event, inherited
    assert event.wait() and event.wait(0.0)
    try:
        event.duration
    except zeusm.LevelZeroError as error:
        assert "forked" in str(error)
    else:
        assert False
    do_everything()
    assert inherited.tobytes() == b"\\7" * 4096
    inherited.memset(8)
    copy = zm.MemoryUSMShared(4096)
    copy.copy_from_device(inherited)
    assert copy.tobytes() == b"\\10" * 4096
    other = zm.MemoryUSMDevice(4096)
    other.memset_async(9, depends=event).wait()
    assert other.tobytes() == b"\\11" * 4096
    del large, event, inherited

child = in_child(check)
assert status(child) == 0
assert event.wait()
assert inherited.tobytes() == b"\\7" * 4096
""")


def test_a_child_ends_without_waiting_for_its_parents_work(run):
    run("""
large = zm.MemoryUSMDevice(64 << 20)
event = large.memset_async(1)
child = os.fork()
if child == 0:
    signal.alarm(60)
    do_everything()
    sys.exit(0)
assert status(child) == 0
assert event.wait()
""")


LOADS = {
    "copies": """
def work():
    memory, host = zm.MemoryUSMDevice(1 << 20), bytearray(1 << 20)
    while True:
        memory.copy_from_host(host)
        memory.copy_to_host(host)
""",
    "brief": """
def work():
    memory, host = zm.MemoryUSMDevice(256), bytearray(256)
    while True:
        memory.copy_from_host(host)
        memory.memset(1)
        memory.copy_to_host_async(host).wait()
""",
    "allocations": """
def work():
    kept = []
    while True:
        kept.append(CLASSES[len(kept) % 3](64 << (len(kept) % 15)))
        if len(kept) > 200:
            kept.clear()
""",
    "exports": """
def work():
    while True:
        memory = zm.MemoryUSMShared(4096)
        handle = memory.ipc_handle()
        zm.IPCMemoryHandle.open(bytes(handle)).close()
        handle.close()
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(4)

def once(number):
    memory = CLASSES[number % 3](1 << 20)
    memory.copy_from_host(bytes([number % 256]) * (1 << 20))
    return memory.tobytes()[-1]

def work():
    while True:
        assert list(pool.map(once, range(16))) == list(range(16))
""",
    "kernels": """
import dpnp

def once():
    x = dpnp.sin(dpnp.ones(100_000)) + 1
    x.sycl_queue.wait()

once()  # The concurrent first use of dpnp in two threads may deadlock, without a fork and without zeusm.

def work():
    while True:
        once()
""",
}

FORKS = """
inherited = [memory_class(4096) for memory_class in CLASSES]
for memory in inherited:
    memory.memset(5)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()


def check():
    for memory in inherited:
        assert memory.tobytes() == b"\\5" * 4096
    do_everything()
    memory = zm.MemoryUSMShared(4096)
    memory.memset(6)
    assert memory.__sycl_usm_array_interface__["data"] == (memory._pointer, False)
    with zm.IPCMemoryHandle.open(bytes(memory.ipc_handle())) as opened:
        assert opened.tobytes() == b"\\6" * 4096


answers = []
for number in range(int(sys.argv[1])):
    time.sleep(0.002 * (number % 7))
    answers.append(status(in_child(check)))
assert set(answers) == {0}, answers
os._exit(0)
"""


@pytest.mark.parametrize(
    "load",
    [pytest.param(load, marks=[pytest.mark.once] if load == "kernels" else []) for load in LOADS],
)
def test_forks_beside_threads_that_work(run, load):
    """Forks 8 times for each load; ZEUSM_TEST_FORKS=100 results in 500 forks in total."""
    run(LOADS[load] + FORKS, os.environ.get("ZEUSM_TEST_FORKS", "8"))


# SYCL's threads for host tasks. A notification in the child waits for those of the parent that were notified before, if others
# have waited since.
THREADS = "SYCL_QUEUE_THREAD_POOL_SIZE"
USER_OF_DPNP = """
import dpnp

array = dpnp.arange(1000.0)
ours = zeusm.from_dlpack(array)
array.sycl_queue.wait()
"""


@pytest.fixture
def without_dpnp_that_waits():
    dpnp = pytest.importorskip("dpnp")
    if dpnp.__version__.startswith("0.15"):
        pytest.skip("dpnp 0.15 itself waits for each of its kernels")


@pytest.mark.daily
@pytest.mark.usefixtures("without_dpnp_that_waits")
def test_a_child_of_a_user_of_dpnp_is_told_that_its_kernels_do_not_complete(fresh):
    """SYCL's host tasks, of which dpnp submits one with each kernel, have their threads in the parent."""
    program = (
        USER_OF_DPNP
        + """

def read(array):
    try:
        return array.copy_to_host()[5]
    except RuntimeError as error:
        assert "spawn" in str(error), error


def check():
    assert ours.copy_to_host()[5] == 5
    dpnp.add(array, 1, out=array)
    begin = time.monotonic()
    assert read(ours) in (6, None)
    assert time.monotonic() - begin < 15


assert status(in_child(check)) == 0
"""
    )
    fresh(START + program, env={THREADS: "1"})


@pytest.mark.daily
@pytest.mark.usefixtures("without_dpnp_that_waits")
def test_the_row_of_dpnp_in_a_child_is_not_obsolete(fresh):
    """docs/limits.md says that submissions may hang inside SYCL: the alarm ends the child."""
    program = (
        USER_OF_DPNP
        + """

def check():
    for _ in range(16):
        dpnp.add(array, 1, out=array)


def hangs():
    dpnp.add(array, 1, out=array)
    array.sycl_queue.wait()
    time.sleep(0.1)
    return status(in_child(check, seconds=5)) == -signal.SIGALRM


assert any(hangs() for _ in range(12)), "the row of dpnp in a child is obsolete"
"""
    )
    fresh(START + program, env={THREADS: "4"})


@pytest.mark.usefixtures("without_dpnp_that_waits")
def test_subprocess_does_not_wait_for_kernels(run):
    """dpctl has `subprocess` fork. Python's own forks wait, so that the child can run kernels."""
    run("""
import dpctl, dpnp, subprocess

assert not subprocess._USE_VFORK
COMPLETE = dpctl.event_status_type.complete


def launch(size):
    x = dpnp.ones(size)
    y = dpnp.sin(x)
    x.sycl_queue.wait()
    dpnp.sin(x, out=y)
    return x.sycl_queue.submit_barrier()


def is_in_flight_after(start, size):
    end = launch(size)
    start()
    time.sleep(0.01)  # The event of the barrier follows the kernel's.
    result = end.execution_status != COMPLETE
    end.wait()
    return result


def start():
    subprocess.run(["true"], check=True)


# The kernel takes much longer than the start of a program.
size = next(size for size in [1 << 22, 1 << 24, 1 << 26] if is_in_flight_after(start, size))
assert not is_in_flight_after(lambda: status(in_child(lambda: None)), size)
assert not is_in_flight_after(lambda: subprocess.run(["true"], preexec_fn=int), size)
os._exit(0)
""")


def test_multiprocessing_beside_a_thread_pool(run):
    run(
        LOADS["threads"]
        + """
import multiprocessing
once(0)  # Completes the imports: a child inherits the import lock of a module that another thread is importing.
threading.Thread(target=work, daemon=True).start()


def task(number):
    signal.alarm(60)
    memory = zm.MemoryUSMDevice(1 << 20)
    memory.memset(number)
    return set(memory.tobytes())


with multiprocessing.get_context("fork").Pool(2) as processes:
    assert processes.map(task, range(10)) == [{number} for number in range(10)]
os._exit(0)
"""
    )


def test_a_dictionary_that_claims_too_much_is_refused_in_a_child(run, usm_type):
    """The child finds the extent of pool blocks, of its own and of inherited ones."""
    run(f"""
def take(memory, **claim):
    # A capsule of the context can be used once, so the interface is read again.
    interface = memory.__sycl_usm_array_interface__ | claim
    return zm.as_usm_memory(type("Array", (), {{"__sycl_usm_array_interface__": interface}}))

def check(memories):
    for memory in memories:
        assert take(memory).nbytes == 256
        try:
            take(memory, shape=(4096,))
        except ValueError as error:
            assert "4096" in str(error), error
            continue
        raise AssertionError(memory)

def check_child():
    own = [type(memories[0])(256) for _ in range(100)]
    pool = zm.MemoryPool("{usm_type}")
    check(memories + own + [pool.malloc(256) for _ in range(100)])

memories = [zm.MemoryUSM{usm_type.title()}(256) for _ in range(3)]
check(memories)
child = in_child(check_child)
assert status(child) == 0
""")
