"""The history of allocations: snapshots against a model, stacks, threads, forks, the exit, and failures."""

import gzip
import inspect
import json
import sys
import threading

import memory_of_process
import pytest
import zeusm.memory as zm
from snapshots import events, frames, rows

pytestmark = pytest.mark.once


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stacks", [True, False])
def test_random_programs_against_a_model(run_recorded, seed, stacks):
    """The live blocks are those of a dictionary, and sums are the statistics of the pools."""
    run_recorded(
        """
seed, stacks = int(sys.argv[1]), sys.argv[2] == "True"
generator = random.Random(seed)
history = zm.record_history(stacks=stacks)
pools = [zm.MemoryPool(kind) for kind in CLASSES] + [zm.get_pool(kind) for kind in CLASSES]
marks = [pool.malloc(77) for pool in pools]
model = {mark._pointer: (77, pool.usm_type) for pool, mark in zip(pools, marks)}
owned = []

def allocate():
    kind, size = generator.choice(list(CLASSES)), generator.choice(SIZES)
    own = pools[list(CLASSES).index(kind)]
    memory = CLASSES[kind](size, pool=generator.choice([None, None, False, own]))
    if generator.random() < 0.2:
        memory = memory[: size // 2 + 1]  # A part keeps the whole block.
        model[memory._pointer] = (size, kind)
    model[memory._pointer] = (size, kind)
    owned.append(memory)

def free():
    memory = owned.pop(generator.randrange(len(owned)))
    del model[memory._pointer]
    memory.close() if generator.random() < 0.5 else None

for step in range(600):
    allocate() if generator.random() < 0.55 or not owned else free()
    if generator.random() < 0.02:
        generator.choice(pools).trim(generator.choice([0, 1 << 20]))
    if step % 100 == 99:
        snapshot = zm.snapshot()
        assert live(snapshot) == model
        assert replayed(snapshot) == {address: size for address, (size, _) in model.items()}
        check_figures(snapshot, zip(pools, marks))
        recorded = rows(snapshot, "blocks")
        assert all((block["stack"] >= 0) == stacks and block["time"] >= 0 for block in recorded)
        assert all((event["stack"] >= 0) == stacks for event in rows(snapshot, "events"))
        hits = [event["hit"] for event in events(snapshot, "allocate")]
        assert hits.count(1) == sum(pool.statistics().hits for pool in pools)
        assert hits.count(0) == sum(pool.statistics().misses for pool in pools)
history.stop()
assert live(history.snapshot()) == live(zm.snapshot()) == model
owned.clear()
assert len(live(zm.snapshot())) == len(marks) and live(history.snapshot()) == model
    """,
        str(seed),
        str(stacks),
    )


def test_threads(run_recorded):
    run_recorded("""
def work(seed, kept):
    generator = random.Random(seed)
    owned = []
    for _ in range(400):
        if generator.random() < 0.55 or not owned:
            owned.append(generator.choice(list(CLASSES.values()))(generator.choice(SIZES)))
        else:
            kept.append(owned.pop(0)) if generator.random() < 0.2 else owned.pop()
    kept.extend(owned)

with zm.record_history() as history:
    kept = [[] for _ in range(6)]
    threads = [threading.Thread(target=work, args=(i, k), name=f"worker {i}") for i, k in enumerate(kept)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for block in rows(zm.snapshot(), "blocks"):
            assert block["size"] in SIZES
    for thread in threads:
        thread.join()
    # Blocks of one thread are freed by another.
    del kept[::2]
    snapshot = history.snapshot()
model = {memory._pointer: memory.nbytes for memories in kept for memory in memories}
assert {address: size for address, (size, _) in live(snapshot).items()} == model == replayed(snapshot)
times = snapshot["events"]["time"]
assert times == sorted(times)
names = [thread["name"] for thread in snapshot["threads"]]
assert sorted(name for name in names if name.startswith("worker")) == [f"worker {i}" for i in range(6)], names
assert {event["thread"] for event in rows(snapshot, "events")} == set(range(len(names)))
assert all(any(name == "work" for name, _ in frames(snapshot, e["stack"])) for e in events(snapshot, "allocate"))
    """)


def test_events_begun_in_an_earlier_recording_have_no_stack_of_the_next(run_recorded):
    run_recorded("""
def one(): zm.MemoryUSMShared(1 << 20, pool=False)
def two(): zm.MemoryUSMShared(2 << 20, pool=False)
def three(): zm.MemoryUSMShared(3 << 20, pool=False)

is_over = False
def work():
    while not is_over:
        one(); two(); three()

thread = threading.Thread(target=work, daemon=True)
thread.start()
functions = {1 << 20: "one", 2 << 20: "two", 3 << 20: "three"}
for round in range(200):
    with zm.record_history(stacks=round % 3 > 0) as history:
        time.sleep(0.002)
    snapshot = history.snapshot()
    for event in events(snapshot, "allocate", "reserve"):
        assert event["stack"] < len(snapshot["stacks"]), (round, event)
        names = [name for name, _ in frames(snapshot, event["stack"])]
        assert not names or functions[event["size"]] in names, (round, names, event)
is_over = True
thread.join()
    """)


def test_a_forks_child_records_by_itself(run_recorded):
    run_recorded("""
inherited = zm.MemoryUSMHost(123)
with zm.record_history() as history:
    before = zm.MemoryUSMHost(456)
    child = os.fork()
    if child == 0:
        try:
            assert not history.recording and not history.snapshot()["events"]["time"]
            new = zm.MemoryUSMHost(789)
            snapshot = zm.snapshot()
            assert not snapshot["events"]["time"]
            sizes = snapshot["blocks"]["size"]
            assert {123, 456, 789} <= set(sizes), sizes
            with zm.record_history() as own:
                more = zm.MemoryUSMHost(1000)
                del before
            snapshot = own.snapshot()
            found = [(e["action"], e["size"]) for e in events(snapshot, "allocate", "free")]
            assert found == [("allocate", 1000), ("free", 456)], found
            assert 456 not in snapshot["blocks"]["size"]
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert history.recording
    after = zm.MemoryUSMHost(999)
sizes = [event["size"] for event in events(history.snapshot(), "allocate")]
assert sizes == [456, 999], sizes
    """)


def test_forks_beside_threads_that_record(run_recorded):
    run_recorded("""
# The first allocation imports dpctl. A child of a fork during an import waits for ever for the module's lock.
zm.MemoryUSMHost(64)
over = threading.Event()
def work():
    while not over.is_set():
        zm.MemoryUSMShared(5000)
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
with zm.record_history(max_events=1000):
    for thread in threads:
        thread.start()
    for _ in range(30):
        child = os.fork()
        if child == 0:
            import signal
            signal.alarm(60)
            with zm.record_history() as own:
                memory = zm.MemoryUSMHost(64)
            os._exit(0 if own.snapshot()["events"]["size"].count(64) == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    over.set()
    for thread in threads:
        thread.join()
    """)


def test_the_exit_with_daemon_threads_and_memory_in_cycles(run_recorded, tmp_path):
    path = tmp_path / "history.json.gz"
    run_recorded(
        """
import atexit
history = zm.record_history(max_events=5000)
atexit.register(lambda: history.save(sys.argv[1]))

class Node:
    def __init__(self):
        self.memory = zm.MemoryUSMShared(1000)
        self.itself = self
    def __del__(self):
        self.memory = None

def work():
    # From the pool's cache: before Python 3.14 the exit aborts where a daemon thread waits for the GIL in zeusm.
    while True:
        zm.MemoryUSMShared(1000)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
kept = [Node() for _ in range(100)]
sys.kept = kept  # Freed by the interpreter itself.
    """,
        str(path),
    )
    snapshot = json.loads(gzip.decompress(path.read_bytes()))
    assert len(snapshot["events"]["time"]) > 100


def test_collections_and_finalizers_may_use_the_history(run_recorded):
    """A free during garbage collection runs no Python code, and finalizers may allocate while events are recorded."""
    run_recorded("""
class Node:
    def __init__(self):
        self.memory, self.itself = zm.MemoryUSMHost(640), self
    def __del__(self):
        deleted.append(zm.MemoryUSMHost(320).nbytes)

deleted = []
gc.set_threshold(1, 1, 1)
with zm.record_history() as history:
    for _ in range(300):
        Node()
    gc.collect()
    # A failure callback allocates and frees inside of an allocation.
    pool = zm.MemoryPool("host", limit=1 << 20)
    hoard = [pool.malloc(1 << 20)]
    def callback(nbytes):
        zm.MemoryUSMHost(321)
        zm.snapshot()
        return bool(hoard) and hoard.pop() is not None
    pool.set_failure_callback(callback)
    last = pool.malloc(1 << 20)
gc.set_threshold(700, 10, 10)
assert gc.isenabled()
assert len(deleted) == 300
snapshot = history.snapshot()
assert live(snapshot) == {last._pointer: (1 << 20, "host")}
assert replayed(snapshot) == {last._pointer: 1 << 20}
inner = [event for event in events(snapshot, "allocate", "free") if event["size"] == 321]
assert [frames(snapshot, event["stack"])[0][0] for event in inner] == ["callback"] * 2
    """)


def test_a_stack_is_read_with_collection_off_and_leaves_it_so(run_recorded):
    run_recorded("""
gc.disable()
with zm.record_history():
    zm.MemoryUSMHost(64)
assert not gc.isenabled()
    """)


def line():
    return sys._getframe(1).f_lineno


def test_the_name_of_a_thread_is_read_without_its_code():
    """Its class may have any, and exceptions in it would be lost in an allocation."""
    ran, watched = [], set()

    class Name(str):
        __slots__ = ()

        def __str__(self):
            ran.append("__str__")
            return "changed"

    class Own(threading.Thread):
        def __getattribute__(self, name):
            if threading.get_ident() in watched:
                ran.append(name)
            return super().__getattribute__(name)

        def run(self):
            vars(self)["_name"] = Name("own")
            watched.add(threading.get_ident())
            zm.MemoryUSMHost(8).close()
            watched.clear()
            vars(self)["_name"] = "own"

    with zm.record_history() as history:
        thread = Own()
        thread.start()
        thread.join()
    assert not ran
    assert "own" in [thread["name"] for thread in history.snapshot()["threads"]]


def test_stacks_have_functions_and_lines(memory_class):
    def allocate():
        return memory_class(1000), line()

    def middle():
        return allocate(), line()

    with zm.record_history() as history:
        (memory, inner), outer = middle()
        del memory
        freed = line() - 1
    snapshot = history.snapshot()
    first, last = (event for event in events(snapshot, "allocate", "free") if event["size"] == 1000)
    name = "test_stacks_have_functions_and_lines"
    assert frames(snapshot, first["stack"])[:2] == [
        (f"{name}.<locals>.allocate", inner),
        (f"{name}.<locals>.middle", outer),
    ]
    assert frames(snapshot, last["stack"])[0] == (name, freed)
    assert __file__ in snapshot["files"]


def test_deep_stacks_keep_the_innermost_frames():
    def deep(depth):
        return deep(depth - 1) if depth else zm.MemoryUSMHost(100)

    with zm.record_history() as history:
        deep(200)
    snapshot = history.snapshot()
    (event,) = (event for event in events(snapshot, "allocate") if event["size"] == 100)
    found = frames(snapshot, event["stack"])
    assert len(found) == 64
    assert {name.rpartition(".")[2] for name, _ in found} == {"deep"}


def test_the_oldest_events_are_dropped():
    with zm.record_history(max_events=10) as history:
        kept = [zm.MemoryUSMHost(1000 + index) for index in range(50)]
    snapshot = history.snapshot()
    assert len(snapshot["events"]["time"]) == 10
    assert snapshot["dropped"] >= 40
    sizes = [event["size"] for event in events(snapshot, "allocate")]
    assert sizes == [1000 + index for index in range(50 - len(sizes), 50)]
    # Live blocks keep what is known of them.
    mine = {memory._pointer for memory in kept}
    blocks = [block for block in rows(snapshot, "blocks") if block["address"] in mine]
    assert len(blocks) == 50
    assert all(block["time"] >= 0 and block["stack"] >= 0 for block in blocks)
    with zm.record_history(max_events=0) as history:
        zm.MemoryUSMHost(64)
    assert not history.snapshot()["events"]["time"]
    assert history.snapshot()["dropped"] >= 2


def test_operations_have_the_times_of_their_execution(run_recorded):
    run_recorded("""
def milliseconds():
    return (time.perf_counter() - begin) * 1000

history = zm.record_history()
begin = time.perf_counter()
memory = zm.MemoryUSMDevice(1 << 20)
zm.MemoryUSMShared(64)[:8].memset(1)
memory.memset(1)
time.sleep(0.3)
before = milliseconds()
memory[:1000].memset_async(2).wait()
copied = bytearray(1 << 20)
memory.copy_to_host_async(copied).wait()
after = milliseconds()
assert bytes(memory.copy_to_host())[999:1001] == bytes([2, 1])

operations = rows(zm.snapshot(), "operations")
of_memory = [it for it in operations if it["size"] in (1 << 20, 1000)]
names = [(it["name"], it["size"]) for it in of_memory]
assert names == [("fill", 1 << 20), ("fill", 1000), ("copy", 1 << 20), ("copy", 1 << 20)], names
assert len({(it["device"], it["queue"]) for it in of_memory}) == 1 and of_memory[0]["device"] >= 0
ends = [it["time"] + it["duration"] for it in of_memory]
assert all(end <= it["time"] for end, it in zip(ends, of_memory[1:])), of_memory
# The clocks of the device and the host are compared with an error, on a busy machine of milliseconds.
begins = [it["time"] / 1e6 for it in of_memory]
assert begins[1] - begins[0] > 200, begins
assert before - 50 < begins[1] < ends[2] / 1e6 < after + 50, (before, begins, ends, after)
assert all(it["duration"] > 0 for it in of_memory), of_memory
history.stop()
memory.memset(3)
assert rows(history.snapshot(), "operations") == operations
    """)


def test_operations_of_several_threads_are_in_the_devices_order(run_recorded):
    """A start is not late because its thread was preempted, and no operation starts after the free of its memory."""
    run_recorded("""
memory = zm.MemoryUSMDevice(1 << 14)
submitted = {}  # By size: each fill has a size of its own.

def fill(first):
    for size in range(first, 1 << 14, 4):
        submitted[size] = memory[:size].memset_async(1)

with zm.record_history() as history:
    threads = [threading.Thread(target=fill, args=(first,)) for first in range(1, 5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    [event.wait() for event in submitted.values()]
    for _ in range(5000):
        short = zm.MemoryUSMDevice(20000)
        short.memset(1)
        short.close()
snapshot = history.snapshot()
operations = rows(snapshot, "operations")
found = [it["size"] for it in operations if it["size"] < 1 << 14]
assert found == sorted(submitted, key=lambda size: submitted[size].profiling_info_start)
assert [it["time"] for it in operations] == sorted(it["time"] for it in operations)
ends = [it["time"] + it["duration"] for it in operations if it["size"] == 20000]
freed = [it["time"] for it in events(snapshot, "free") if it["size"] == 20000]
late = [end - time for end, time in zip(ends, freed, strict=True) if end > time]
# The host's and the device's clocks are compared with an error of microseconds.
assert len(late) < 50 and sum(it > 10_000 for it in late) < 5, late
assert max(late, default=0) < 1_000_000, late
    """)


def test_an_operation_in_flight_retains_none_of_other_queues(run_recorded):
    run_recorded(
        inspect.getsource(memory_of_process)
        + """
import dpctl

gpus = dpctl.get_devices("level_zero", "gpu")
busy, other = [zm.MemoryUSMDevice(1 << 28, queue=dpctl.SyclQueue(gpu)) for gpu in gpus]
busy.memset(1)
other = other[:1000]
other.memset(1)
with zm.record_history(max_events=10) as history:
    pending = [busy.memset_async(2) for _ in range(40)]
    before, submitted = resident(), 0
    while submitted < 30_000 and not pending[-1].is_complete:
        other.memset(3)
        submitted += 1
    grown = resident() - before
    assert submitted > 10_000, submitted
    assert grown < 4 << 20, grown
    sizes = [it["size"] for it in rows(history.snapshot(), "operations")]
    # Fills of the busy device may have begun after the others, and be complete.
    assert len(sizes) == 10 and set(sizes) <= {1000, busy.nbytes}, sizes
    for event in pending:
        event.wait()
""",
        env={"ZEUSM_CPU_DEVICES": "2"},
    )


def test_the_oldest_operations_are_dropped(run_recorded):
    run_recorded("""
memory = zm.MemoryUSMDevice(1 << 20)
with zm.record_history(max_events=2) as history:
    for size in range(1000, 1005):
        memory[:size].memset(7)
snapshot = history.snapshot()
assert [it["size"] for it in rows(snapshot, "operations")] == [1003, 1004]
assert snapshot["dropped_operations"] == 3
    """)


def test_a_new_recording_stops_the_one_before(tmp_path):
    first = zm.record_history()
    zm.MemoryUSMHost(111)
    second = zm.record_history(stacks=False)
    zm.MemoryUSMHost(222)
    assert not first.recording
    assert second.recording
    assert "recording" in repr(second)
    first.stop()  # It is stopped already, and does not stop the second.
    assert zm.record_history(False) is second
    assert zm.record_history(enabled=False) is None
    assert "stopped" in repr(second)
    for history, size in [(first, 111), (second, 222)]:
        snapshot = history.snapshot()
        assert {event["size"] for event in events(snapshot, "allocate")} == {size}
        for name in ("h.json", "h.json.gz"):
            history.save(tmp_path / name)
            data = (tmp_path / name).read_bytes()
            data = gzip.decompress(data) if name.endswith("gz") else data
            assert json.loads(data) == snapshot
    assert first.snapshot()["stacks"]
    assert not second.snapshot()["stacks"]
    assert not zm.snapshot()["events"]["time"]


@pytest.mark.parametrize("name", ["h.json", "h.json.gz"])
def test_a_file_that_cannot_be_written_whole_is_removed(fresh, tmp_path, name):
    """As on a full file system; one that cannot be opened stays."""
    path = tmp_path / name
    program = f"""
        import resource, zeusm.memory as zm
        with zm.record_history() as history:
            zm.MemoryUSMHost(1).close()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            history.save({str(path)!r})
        except OSError as error:
            print(error.strerror)
    """
    assert fresh(program).stdout.strip() == "File too large"
    assert not path.exists()


def test_a_line_in_a_loop_is_one_stack():
    """CPython replaces instructions of a loop by specialised ones."""
    blocks, pool = [], zm.MemoryPool("host")
    with zm.record_history() as history:
        for _ in range(100):
            blocks.append(pool.malloc(12345))
    blocks = history.snapshot()["blocks"]
    stacks = [
        stack for stack, size in zip(blocks["stack"], blocks["size"], strict=True) if size == 12345
    ]
    assert len(stacks) == 100
    assert len(set(stacks)) == 1


def test_a_stopped_history_cannot_be_entered():
    with zm.record_history() as history:
        pass
    with pytest.raises(RuntimeError, match="record_history"), history:
        pass


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_events": -1}, ValueError),
        ({"max_events": 1.5}, TypeError),
        ({"max_events": "1"}, TypeError),
        ({"stacks": 5}, TypeError),
    ],
)
def test_wrong_options_stop_no_recording(options, error):
    with zm.record_history() as history:
        with pytest.raises(error):
            zm.record_history(**options)
        assert history.recording
    with pytest.raises(error):
        zm.record_history(**options)
    assert zm.record_history(False) is None
