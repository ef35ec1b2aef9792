"""Host accesses to memory that migrates, and operands, beside other threads and at the exit: in processes of their own."""


def test_a_host_access_waits_for_the_whole_allocation_where_it_migrates(fresh):
    """The driver of a discrete GPU migrates shared memory as a whole, and the host's copy discards what is being written."""
    fresh(
        """
import pickle
import numpy
import zeusm.memory as zm

ways = [
    lambda tail: tail.view("u1").copy_to_host(),
    lambda tail: tail.view("u1").copy_from_host(numpy.zeros(64, "u1")),
    lambda tail: tail.view("u1").__setitem__(slice(5), numpy.ones(5, "u1")),
    memoryview,
    pickle.dumps,
]
for way in ways:
    memory = zm.MemoryUSMShared(1 << 27)
    written = memory[: 1 << 26].memset_async(9)
    way(memory[-64:])
    assert written.is_complete, way
""",
        env={"ZEUSM_CPU_DISCRETE": "1"},
    )


def test_host_access_waits_for_a_blocking_call_of_another_thread_if_memory_migrates(fresh):
    """The GIL is released in the call, so other threads run while the device writes to other bytes of the allocation."""
    fresh(
        """
import threading
import time
import dpctl
import zeusm.memory as zm

HALF = 1 << 26
elsewhere = dpctl.SyclQueue(dpctl.SyclContext(), dpctl.SyclDevice())
packed, apart = zm.MemoryUSMDevice(HALF), zm.MemoryUSMDevice(HALF, queue=elsewhere)
packed.memset(9)
apart.memset(9)
calls = {
    "fill": lambda head: head.memset(9),
    "from the host": lambda head: head.copy_from_host(bytes([9]) * HALF),
    "from a device": lambda head: head.copy_from_device(packed),
    "of regions": lambda head: head.view("u1").__setitem__(slice(None), packed.view("u1")),
    "of another context": lambda head: head.copy_from_device(apart),
}
for name, call in calls.items():
    memory = zm.MemoryUSMShared(2 * HALF)
    memory.memset()
    written = memoryview(memory)[:HALF : 1 << 14]
    thread = threading.Thread(target=call, args=(memory[:HALF],))
    thread.start()
    while not any(bytes(written[::16])):
        time.sleep(0)
    memoryview(memory[-64:])
    assert set(bytes(written)) == {9}, name
    thread.join()
""",
        env={"ZEUSM_CPU_DISCRETE": "1"},
    )


def test_a_host_access_is_not_starved_by_submissions_if_memory_migrates(fresh):
    """Another thread that submits faster than the device executes always has an operation in flight."""
    fresh(
        """
import threading
import time
import zeusm.memory as zm

memory = zm.MemoryUSMShared(8 << 20)
submitted = 0

def submit():
    global submitted
    while True:
        memory[: 4 << 20].memset_async(7)
        submitted += 1

for _ in range(2):
    threading.Thread(target=submit, daemon=True).start()
while not submitted:
    time.sleep(0.01)
for _ in range(5):
    before = submitted
    assert memory.copy_to_host()[-1] == bytes(memoryview(memory[-64:]))[0] == 0
    while submitted < before + 3:  # The accesses do not stop the submissions either.
        time.sleep(0.01)
""",
        env={"ZEUSM_CPU_DISCRETE": "1"},
    )


def test_a_finalizer_at_the_exit_does_not_wait_for_a_stopped_thread(fresh):
    """The interpreter's exit stops daemon threads, some of them within a submission."""
    fresh(
        """
import threading
import time
import zeusm.memory as zm

class Saver:
    def __init__(self, memory):
        self.memory = memory

    def __del__(self, view=memoryview, bytes=bytes):
        bytes(view(self.memory))
        self.memory.memset(1)

memory = zm.MemoryUSMShared(4 << 20)  # Large enough to be in flight when the call returns.
space = {"memory": memory}  # Of a module that outlives the thread.
exec("def submit():\\n    while True:\\n        memory.memset_async(7)", space)
exec("def access():\\n    while True:\\n        memory.tobytes()", space)
for name in ["submit", "access"]:
    threading.Thread(target=space[name], daemon=True).start()
del space
time.sleep(0.2)
saver = Saver(memory)
""",
        env={"ZEUSM_CPU_DISCRETE": "1"},
    )


def test_operands_are_dropped_after_the_submission(fresh):
    """A finalizer waited for a lock in a submission, whose end the owner of the lock waited for."""
    out = fresh(
        """
import threading
import time
import zeusm.memory as zm

SIZE = 2 << 20
lock = threading.Lock()
memory = zm.MemoryUSMShared(SIZE)
submissions = 0

class Source(bytearray):
    def __del__(self):
        with lock:
            pass

def submit():
    global submissions
    while True:
        memory.copy_from_host_async(Source(SIZE))
        submissions += 1

threading.Thread(target=submit, daemon=True).start()
end = time.monotonic() + 3
while time.monotonic() < end or submissions < 100:
    with lock:
        memoryview(memory)[0]
    time.sleep(0)
print("no deadlock")
""",
        env={"ZEUSM_CPU_DISCRETE": "1"},
    ).stdout
    assert out == "no deadlock\n"
