"""`zeusm memory export`: each format is read back by a reader written from its description, and agrees with the history."""

import copy
import gzip
import json
import pickle
import pickletools
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from histories import ACTIONS, EVENT, Simulated, empty, simulate
from zeusm._pictures import flamegraph, perfetto, pytorch
from zeusm._pictures.file import parse
from zeusm._pictures.moments import moment
from zeusm._pictures.replay import replay

pytestmark = pytest.mark.once

TREE = simulate(1500, seed=3)


@pytest.fixture
def tree():
    return copy.deepcopy(TREE)


@pytest.fixture
def export(tmp_path):
    """Runs the command, and returns the path of what it wrote."""

    def run(tree, to, *options, name=None):
        history = tmp_path / "history.json"
        history.write_text(json.dumps(tree))
        command = [sys.executable, "-m", "zeusm", "memory", "export", str(history), "--to", to]
        if name:
            options = (*options, "-o", str(tmp_path / name))
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=300, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return tmp_path / done.stdout.removeprefix("wrote ").strip()

    return run


def in_use(tree, kinds=(0, 1, 2)):
    """Bytes in use after each row."""
    level, live, found = 0, {}, []
    events = tree["events"]
    for action, address, size, kind in zip(
        *(events[name] for name in ("action", "address", "size", "kind")), strict=True
    ):
        if ACTIONS[action] == "allocate" and kind in kinds:
            live[address] = size
            level += size
        elif ACTIONS[action] == "free" and kind in kinds:
            level -= live.pop(address)
        found.append(level)
    return found


class TestPerfetto:
    def test_counters(self, tree, export):
        trace = json.loads(export(tree, "perfetto").read_text())
        assert trace["displayTimeUnit"] == "ns"
        for kind, name in enumerate(tree["kinds"]):
            counter = [
                event
                for event in trace["traceEvents"]
                if event["ph"] == "C" and event["name"] == f"in use: {name}"
            ]
            times = [event["ts"] for event in counter]
            assert times == sorted(set(times))
            at = {round(event["ts"] * 1000): event["args"]["bytes"] for event in counter}
            level = 0
            for time, expected in zip(tree["events"]["time"], in_use(tree, [kind]), strict=True):
                level = at.get(time, level)
                assert level == expected

    def test_held(self, tree):
        held = dict.fromkeys(tree["kinds"], 0)
        for event in perfetto.trace(replay(parse(tree))):
            if event["ph"] == "C" and event["name"].startswith("held: "):
                held[event["name"].removeprefix("held: ")] = event["args"]["bytes"]
        slabs = tree["slabs"]
        for kind, name in enumerate(tree["kinds"]):
            sizes = zip(slabs["size"], slabs["kind"], strict=True)
            assert held[name] == sum(size for size, of in sizes if of == kind)

    def test_instants_and_threads(self, tree, export):
        path = export(tree, "perfetto", name="trace.json.gz")
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        instants = [event for event in events if event["ph"] == "i"]
        names = [ACTIONS[action] for action in tree["events"]["action"]]
        assert len(instants) == names.count("trim") + names.count("fail")
        failed = [event for event in instants if event["name"].startswith("allocation failed")]
        assert [event["name"] for event in failed] == ["allocation failed: 64 MiB of device"] * 2
        assert [event["args"]["message"] for event in failed] == [
            failure["message"] for failure in tree["failures"]
        ]
        assert failed[0]["args"]["stack"] == ["layer_3 (layers.py:103)", "<module> (train.py:10)"]
        assert all(event["s"] == "p" and event["tid"] < 2**31 for event in instants)
        threads = {
            event["tid"]: event["args"]["name"]
            for event in events
            if event["ph"] == "M" and event["name"] == "thread_name"
        }
        assert threads[failed[0]["tid"]] == "MainThread 140000000000001"

    def test_operations_that_overlap_are_in_tracks_of_their_own(self, tree):
        tree["operations"] = {
            "time": [1000, 1500, 3000, 1000],
            "duration": [1000, 500, 100, 5000],
            "name": ["copy", "fill", "kernel", "other queue"],
            "device": [0, 0, 0, 0],
            "queue": [1, 1, 1, 2],
            "size": [64, 32, 0, 8],
        }
        events = list(perfetto.trace(replay(parse(tree))))
        slices = {event["name"]: event for event in events if event["ph"] == "X"}
        assert (slices["copy"]["ts"], slices["copy"]["dur"]) == (1, 1)
        assert slices["kernel"]["args"] == {"bytes": 0}
        assert slices["copy"]["tid"] == slices["kernel"]["tid"]
        tids = {slices[name]["tid"] for name in ("copy", "fill", "other queue")}
        assert len(tids) == 3
        tracks = {
            event["tid"]: event["args"]["name"]
            for event in events
            if "tid" in event and event["ph"] == "M"
        }
        assert [tracks[slices[name]["tid"]] for name in slices] == [
            "device 0, queue 1",
            "device 0, queue 1",
            "device 0, queue 2",
            "device 0, queue 1",
        ]

    def test_queues_after_each_other_share_a_track(self, tree):
        tree["operations"] = {
            "time": [100, 1000, 2000, 3000, 2400],
            "duration": [5000, 500, 500, 500, 1000],
            "name": ["long", "first", "second", "third", "beside"],
            "device": [0, 0, 0, 0, 0],
            "queue": [1, 2, 3, 4, 5],
            "size": [1, 1, 1, 1, 1],
        }
        events = list(perfetto.trace(replay(parse(tree))))
        tids = {event["name"]: event["tid"] for event in events if event["ph"] == "X"}
        assert tids["first"] == tids["second"] == tids["third"]
        assert len(set(tids.values())) == 3
        names = {
            event["tid"]: event["args"]["name"]
            for event in events
            if event["ph"] == "M" and event["name"] == "thread_name"
        }
        assert names[tids["first"]] == "device 0, 3 queues from 2 to 4"
        assert names[tids["beside"]] == "device 0, queue 5"


#: The operations of pickles that the viewer's own reader knows.
READABLE = frozenset(
    [
        "APPEND",
        "APPENDS",
        "LIST",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "NEWFALSE",
        "NEWTRUE",
        "NONE",
        "BINGET",
        "BININT",
        "BININT1",
        "BININT2",
        "EMPTY_DICT",
        "EMPTY_LIST",
        "EMPTY_TUPLE",
        "FRAME",
        "LONG1",
        "LONG_BINGET",
        "MARK",
        "MEMOIZE",
        "BINPUT",
        "LONG_BINPUT",
        "PROTO",
        "SETITEM",
        "SETITEMS",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "STOP",
        "DICT",
        "BINFLOAT",
    ]
)


class Viewer:
    """What PyTorch's memory viewer does with a snapshot, with its assumptions as assertions."""

    def __init__(self, data):
        for opcode, argument, _ in pickletools.genops(data):
            assert opcode.name in READABLE, opcode.name
            if opcode.name == "PROTO":
                assert 2 <= argument <= 4
            if isinstance(argument, int):
                assert abs(argument) < 2**53, "not exact in JavaScript"
        self.snapshot = pickle.loads(data)
        self.check_segments()

    def check_segments(self):
        for segment in self.snapshot["segments"]:
            at = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == at
                assert block["size"] > 0
                assert block["state"] in ("active_allocated", "inactive")
                assert block["requested_size"] <= block["size"]
                self.check_frames(block["frames"])
                at += block["size"]
            assert at == segment["address"] + segment["total_size"]
            active = [b for b in segment["blocks"] if b["state"] == "active_allocated"]
            assert segment["allocated_size"] == sum(block["size"] for block in active)
            assert segment["requested_size"] == sum(block["requested_size"] for block in active)

    def check_frames(self, frames):
        for frame in frames:
            assert {name: type(value) for name, value in frame.items()} == {
                "filename": str,
                "line": int,
                "name": str,
            }

    def backwards(self, device):
        """Undo the events from the last one on, as the viewer's history of the state does: yields the live blocks before each
        event. Blocks are in a segment at any time."""
        segments, blocks = {}, {}
        for segment in self.snapshot["segments"]:
            if segment["device"] == device:
                segments[segment["address"]] = segment["total_size"]
                for block in segment["blocks"]:
                    if block["state"] == "active_allocated":
                        blocks[block["address"]] = block["requested_size"]
        waiting = None
        for event in reversed(self.snapshot["device_traces"][device]):
            self.check_frames(event["frames"])
            assert event["stream"] == 0
            address, size = event.get("addr"), event["size"]
            match event["action"]:
                case "free_completed":
                    waiting = address
                    continue
                case "free_requested":
                    assert waiting == address, "the viewer joins neighbours only"
                    assert address not in blocks
                    blocks[address] = size
                    waiting = None
                case "alloc":
                    assert blocks.pop(address) == size
                case "segment_free":
                    assert address not in segments
                    segments[address] = size
                case "segment_alloc":
                    assert segments.pop(address) == size
                case "oom":
                    assert event["device_free"] >= 0
                case other:
                    raise AssertionError(other)
            assert waiting is None
            for block, length in blocks.items():
                assert any(
                    start <= block and block + length <= start + total
                    for start, total in segments.items()
                )
            yield dict(blocks)


class TestPyTorch:
    def test_the_viewer_can_play_it_backwards(self, export):
        tree = simulate(400, seed=4)
        viewer = Viewer(export(tree, "pytorch").read_bytes())
        names = viewer.snapshot["allocator_settings"]
        for device, trace in enumerate(viewer.snapshot["device_traces"]):
            kind = tree["kinds"].index(names[f"device {device}"])
            levels = {sum(blocks.values()) for blocks in viewer.backwards(device)}
            expected = set(in_use(tree, [kind]))
            assert levels - expected == set()
            assert max(levels) == max(expected)
            assert trace[0]["action"] == "segment_alloc"
            times = [event["time_us"] for event in trace]
            assert times == sorted(times)
            assert times[0] >= tree["clock"]["start"] // 1000

    def test_segments_are_the_slabs(self, tree, export):
        viewer = Viewer(export(tree, "pytorch").read_bytes())
        shown = sorted(
            (each["address"], each["total_size"]) for each in viewer.snapshot["segments"]
        )
        slabs = tree["slabs"]
        assert shown == sorted(
            (address & (1 << 48) - 1, size)
            for address, size in zip(slabs["address"], slabs["size"], strict=True)
        )
        requested = sum(each["requested_size"] for each in viewer.snapshot["segments"])
        assert requested == sum(tree["blocks"]["size"])
        rounded = [
            block["size"]
            for segment in viewer.snapshot["segments"]
            if segment["segment_type"] == "small"
            for block in segment["blocks"]
            if block["state"] == "active_allocated"
        ]
        assert {size & (size - 1) for size in rounded if size <= 1 << 19} == {0}

    def test_failures(self, tree):
        snapshot = pytorch.snapshot(replay(parse(tree)))
        out = [
            event
            for trace in snapshot["device_traces"]
            for event in trace
            if event["action"] == "oom"
        ]
        assert [event["size"] for event in out] == [64 << 20] * 2
        assert out[0]["frames"][0] == {
            "filename": "/home/a/model/layers.py",
            "line": 103,
            "name": "layer_3",
        }

    def test_memory_without_its_slab(self):
        """Blocks whose slab is unknown, as after dropped events, have a segment of their own."""
        tree = empty(dropped=3)
        steps = [(1, 0, 64), (2, 0, 32), (3, 1, 64), (4, 1, 96)]
        addresses = [4096, 8192, 4096, 12288]
        for (time, action, size), address in zip(steps, addresses, strict=True):
            row = dict.fromkeys(EVENT, 0) | {"kind": 1, "stack": -1, "hit": -1}
            row |= {"time": time, "action": action, "size": size, "address": address}
            for name, value in row.items():
                tree["events"][name].append(value)
        viewer = Viewer(pickle.dumps(pytorch.snapshot(replay(parse(tree))), protocol=4))
        assert [sum(blocks.values()) for blocks in viewer.backwards(0)][-1] == 96
        assert [each["address"] for each in viewer.snapshot["segments"]] == [8192]


class TestFlameGraph:
    def test_folded(self, tree, export):
        lines = export(tree, "flamegraph", name="live.txt").read_text().splitlines()
        sizes = {}
        for line in lines:
            names, size = line.rsplit(" ", 1)
            sizes[tuple(names.split(";"))] = int(size)
        blocks, expected = tree["blocks"], {}
        for size, kind, stack in zip(blocks["size"], blocks["kind"], blocks["stack"], strict=True):
            names = (
                tree["kinds"][kind],
                "<module> (train.py:10)",
                f"layer_{stack} (layers.py:{100 + stack})",
            )
            expected[names] = expected.get(names, 0) + size
        assert sizes == expected

    def test_the_peak(self, tree, export):
        lines = (
            export(tree, "flamegraph", "--at", "peak", name="peak.folded").read_text().splitlines()
        )
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == max(in_use(tree))

    def test_picture(self, tree, export):
        """The boxes of a row do not overlap, lie above their frames' callers, and are as wide as their bytes."""
        root = ElementTree.parse(export(tree, "flamegraph")).getroot()
        space = "{http://www.w3.org/2000/svg}"
        boxes = [
            (
                box.find(f"{space}title").text,
                *(float(box.find(f"{space}rect").get(name)) for name in ("x", "y", "width")),
            )
            for box in root.iter(f"{space}g")
        ]
        total = sum(tree["blocks"]["size"])
        width = boxes[0][3]
        assert boxes[0][0].startswith("all: ")
        rows = {}
        for title, x, y, size in boxes:
            rows.setdefault(y, []).append((x, x + size, title))
        for row in rows.values():
            row.sort()
            assert all(end <= start + 0.02 for (_, end, _), (start, _, _) in pairwise(row))
        device = sum(
            size
            for size, kind in zip(tree["blocks"]["size"], tree["blocks"]["kind"], strict=True)
            if kind == 1
        )
        shown = next(size for title, _, _, size in boxes if title.startswith("device: "))
        assert shown == pytest.approx(width * device / total, abs=0.02)

    def test_hostile_names(self, tree):
        tree["functions"] = ["a;b\n<c>&\x00"] * len(tree["functions"])
        found = replay(parse(tree))
        ElementTree.fromstring(flamegraph.picture(found, found.end, "the end"))
        lines = flamegraph.folded(found, found.end)
        assert all(line.count(";") == 2 and "\n" not in line for line in lines)

    def test_nothing_is_live(self):
        found = replay(parse(empty()))
        assert flamegraph.folded(found, found.end) == []
        picture = flamegraph.picture(found, found.end, "the end")
        assert "0 B in 0 blocks live at the end" in picture

    def test_a_deep_stack(self):
        program = Simulated()
        program.allocate(1000, 0, 0)
        tree = program.finish()
        tree["stacks"][0] = [0] * 5000
        found = replay(parse(tree))
        assert flamegraph.picture(found, found.end, "the end").count("<rect") == 5002
        assert moment(found, found.end).size == 1000
