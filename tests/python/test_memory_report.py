"""The page of `zeusm memory report`: its figures against the history by other means, and files that are no histories."""

import base64
import copy
import gzip
import html
import json
import re
import struct
import subprocess
import sys
from array import array
from itertools import pairwise

import pytest
from histories import ACTIONS, BLOCK, EVENT, SLAB, Simulated, empty, simulate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zeusm._pictures.failures import remedy
from zeusm._pictures.file import HistoryError, load, parse
from zeusm._pictures.moments import moment
from zeusm._pictures.page import page
from zeusm._pictures.replay import replay
from zeusm._pictures.summary import summary
from zeusm._pictures.text import size

pytestmark = pytest.mark.once

HISTORIES = {"small": simulate(60, seed=1), "large": simulate(3000, seed=2)}


def zeusm(*arguments):
    command = [sys.executable, "-m", "zeusm", "memory", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(params=HISTORIES)
def tree(request):
    return copy.deepcopy(HISTORIES[request.param])


@pytest.fixture
def save(tmp_path):
    def write(tree, name="history.json"):
        data = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


#: What a system tells of a folder that is opened as a file.
OF_A_FOLDER = "Permission denied" if sys.platform == "win32" else "Is a directory"


@pytest.mark.parametrize("path", [".", "/", "", ".."])
@pytest.mark.parametrize("action", [["report"], ["summary"], ["export", "--to", "perfetto"]])
def test_a_folder_is_no_history(action, path):
    done = zeusm(*action, path)
    assert done.returncode == 2
    assert done.stderr.endswith(f": {OF_A_FOLDER}\n")
    assert done.stderr.count("\n") == 1


def rows(tree):
    return list(zip(*(tree["events"][name] for name in EVENT), strict=True))


def live_after(tree, row):
    """The live blocks after a row, by a walk over the events: address to size, kind and stack."""
    live = {}
    for _, action, address, size_of, kind, _, _, _, stack, _ in rows(tree)[: row + 1]:
        if ACTIONS[action] == "allocate":
            live[address] = (size_of, kind, stack)
        elif ACTIONS[action] == "free":
            del live[address]
    return live


def data_of(text):
    """The header and the tables of the page's data."""
    packed = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
    data = gzip.decompress(base64.b64decode(packed))
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[8 : 8 + length])
    tables = {}
    for table, name, code, offset, count in header["columns"]:
        column = array(code)
        start = 8 + -(-length // 8) * 8 + offset
        column.frombytes(data[start : start + count * column.itemsize])
        tables.setdefault(table, {})[name] = list(column)
    return header, tables


def test_the_data_are_the_events(tree):
    """The live bytes after each row are those of the events, in all and by kind, as are the regions."""
    header, tables = data_of(page(replay(parse(tree))))
    assert header["rows"] == len(tree["events"]["time"])
    assert tables["event"]["time"] == tree["events"]["time"]
    block, region = tables["block"], tables["region"]
    for row in range(0, header["rows"], max(1, header["rows"] // 40)):
        live = live_after(tree, row)
        shown = {
            address: (int(size_of), place, stack)
            for address, size_of, place, stack, first, last in zip(
                *(block[name] for name in ("address", "size", "place", "stack", "first", "last")),
                strict=True,
            )
            if first <= row < last
        }
        names = [header["places"][place] for _, place, _ in shown.values()]
        assert names == [tree["kinds"][kind] for _, kind, _ in (live[at] for at in shown)]
        assert {at: (s, k) for at, (s, _, k) in shown.items()} == {
            at: (s, k) for at, (s, _, k) in live.items()
        }
        held = 0
        for _, action, _, size_of, *_ in rows(tree)[: row + 1]:
            held += {"reserve": size_of, "release": -size_of}.get(ACTIONS[action], 0)
        spans = zip(region["size"], region["first"], region["last"], strict=True)
        assert sum(s for s, first, last in spans if first <= row < last) == held


def test_the_peak(tree):
    levels = [
        sum(size_of for size_of, _, _ in live_after(tree, row).values())
        for row in range(len(tree["events"]["time"]))
    ]
    most = max(levels)
    found = replay(parse(tree))
    assert found.peaks[None] == levels.index(most)
    state = moment(found, found.peaks[None])
    assert state.size == most
    by_stack = {}
    for size_of, kind, stack in live_after(tree, state.row).values():
        by_stack[stack, kind] = by_stack.get((stack, kind), 0) + size_of
    holders = {(each.stack, found.places[each.place][0]): each.size for each in state.holders}
    assert holders == by_stack
    assert [each.size for each in state.holders] == sorted(by_stack.values(), reverse=True)
    text = html.unescape(page(found))
    assert f"<dt>Peak in use</dt><dd>{size(most)}</dd>" in text
    assert f"{size(levels[-1])} in " in text
    # In text, the kinds of memory and the frames below each sum up to their parents.
    lines = list(summary(found))
    assert f"{'Peak in use:':33}{size(most)}" in lines
    kinds = {}
    for (_, kind), held in by_stack.items():
        kinds[tree["kinds"][kind]] = kinds.get(tree["kinds"][kind], 0) + held
    shown = [line.split() for line in lines if re.match(r" +[\d.e+]+ \wi?B? +[\d.]+%", line)]
    smaller = sum(held < most / 100 for held in kinds.values())
    assert (f"Smaller ones, not shown: {smaller}" in lines) == (smaller > 0)
    for kind, held in kinds.items():
        if held >= most / 100:
            assert [*size(held).split(), f"{held / most:.1%}"] in [
                line[:3] for line in shown if line[-1] == kind
            ]


def test_blocks_from_before_the_recording():
    """A free without an allocation, and a block of the end that was not allocated, lived from the beginning."""
    tree = empty()
    event = dict.fromkeys(EVENT, 0) | {"kind": 1, "stack": -1, "hit": -1, "thread": -1}
    for name, value in (event | {"time": 50, "action": 1, "address": 4096, "size": 100}).items():
        tree["events"][name].append(value)
    block = dict.fromkeys(BLOCK, 0) | {"stack": -1, "time": -1, "kind": 1}
    for name, value in (block | {"address": 8192, "size": 30}).items():
        tree["blocks"][name].append(value)
    found = replay(parse(tree))
    blocks = sorted((each.size, each.first, each.last) for each in found.blocks)
    assert blocks == [(30, -1, 1), (100, -1, 0)]
    assert moment(found, -1).size == 130
    assert moment(found, found.end).size == 30
    assert found.peaks == {None: -1, 0: -1}
    assert not found.problems
    assert "at the beginning" in page(found)


def test_a_damaged_history_is_shown_with_a_note(tree):
    """A block freed twice and one allocated at a live address are counted, and change no other figure."""
    before = moment(replay(parse(tree)), len(rows(tree)) - 1)
    freed = next(
        row
        for row in rows(tree)
        if ACTIONS[row[1]] == "free" and row[2] not in live_after(tree, len(rows(tree)))
    )
    live = next(iter(live_after(tree, len(rows(tree)))))
    again = next(row for row in rows(tree) if row[2] == live and ACTIONS[row[1]] == "allocate")
    for row in (freed, again):
        for name, value in zip(EVENT, (rows(tree)[-1][0], *row[1:]), strict=True):
            tree["events"][name].append(value)
    found = replay(parse(tree))
    assert moment(found, found.end).size >= before.size - again[3]
    assert sum(found.problems.values()) == 2
    text = page(found)
    assert "free of an address twice: 1" in text
    assert "allocate of an address that is live: 1" in text


def test_stacks_are_as_recorded(tree):
    header, tables = data_of(page(replay(parse(tree))))
    frames = header["frames"]
    named = [
        [
            (header["files"][f], line, header["functions"][n])
            for f, line, n in (frames[i] for i in each)
        ]
        for each in header["stacks"]
    ]
    assert named[3] == [
        ("/home/a/model/layers.py", 103, "layer_3"),
        ("/home/a/train.py", 10, "<module>"),
    ]
    assert set(tables["block"]["stack"]) <= set(range(len(named)))


def test_slabs_and_the_blocks_in_them(tree):
    _, tables = data_of(page(replay(parse(tree))))
    live = tables["live"]
    found = sorted(
        (tables["slab"]["address"][slab] + int(offset), size_of)
        for slab, offset, size_of in zip(live["slab"], live["offset"], live["size"], strict=True)
    )
    assert found == sorted(zip(tree["blocks"]["address"], tree["blocks"]["size"], strict=True))


def test_addresses_without_gaps_do_not_overlap(tree):
    """On the vertical axis, memory that lives at the same time has different places, in the order of addresses."""
    header, tables = data_of(page(replay(parse(tree))))
    block = tables["block"]
    shown = sorted(zip(block["address"], block["position"], block["size"], strict=True))
    for (low, position, _), (high, above, _) in pairwise(shown):
        assert above >= position
        if high - low < 4096:
            assert above - position == high - low
    assert max(position + size_of for _, position, size_of in shown) <= header["extent"]


class TestFailures:
    """What would have made room for 1 MiB of device memory, of which 256 KiB were free."""

    def failed(self, *blocks, free=256 << 10, asked=1 << 20):
        program = Simulated()
        for size_of, kind, stack in blocks:
            program.allocate(size_of, kind, stack)
        program.fail(asked, 1, 0, free)
        found = replay(parse(program.finish()))
        return found, remedy(found, found.history.failures[0])

    def test_the_fewest_stacks(self):
        _, way = self.failed(
            (500 << 10, 1, 1), (400 << 10, 1, 2), (400 << 10, 1, 2), (90 << 20, 0, 3), (1000, 1, 4)
        )
        assert way.need == 768 << 10
        assert [(each.stack, each.size, each.blocks) for each in way.stacks] == [(2, 800 << 10, 2)]
        assert way.is_enough

    def test_all_of_them_are_not_enough(self):
        found, way = self.failed((1000, 1, 1), (2000, 1, 2))
        assert not way.is_enough
        assert [each.stack for each in way.stacks] == [2, 1]
        assert "Not by freeing alone: all blocks of that kind were 2.93 KiB" in page(found)

    def test_slabs_that_few_bytes_pin(self):
        found, way = self.failed(
            (700, 1, 1), (900, 1, 1), (2000, 1, 5), (900 << 10, 1, 2), asked=2 << 20, free=0
        )
        assert (way.pinned.slabs, way.pinned.size) == (2, 2 << 20)
        assert (way.pinned.blocks, way.pinned.used) == (3, 3600)
        assert {each.stack for each in way.pinned.holders} == {1, 5}
        assert "Freeing 3 blocks of 3.516 KiB that kept 2 slabs of 2 MiB" in page(found)

    def test_the_limit_of_a_pool(self):
        """Only the blocks of that pool count, up to its limit."""
        program = Simulated()
        program.allocate(600 << 10, 1, 1)
        program.allocate(900 << 10, 1, 2)
        program.fail(1 << 20, 1, 0)
        tree = program.finish()
        for name in (
            "events",
            "blocks",
            "slabs",
        ):  # The second block and its slab are of another pool.
            second = max(tree[name]["address"])
            tree[name]["pool"] = [
                0 if address == second else 1 for address in tree[name]["address"]
            ]
        tree["failures"][0]["message"] = (
            "1 MiB (1048576 bytes) more than the 600 KiB (614400 bytes) held would exceed the pool's limit of 1.5 MiB (1536000 bytes)"
        )
        found = replay(parse(tree))
        way = remedy(found, found.history.failures[0])
        assert way.need == 1048576 + 614400 - 1536000
        assert [(each.stack, each.size) for each in way.stacks] == [(1, 600 << 10)]
        assert "A higher limit of the pool: 1.586 MiB" in page(found)

    def test_there_was_enough(self):
        found, way = self.failed((1000, 1, 1), free=2 << 20)
        assert way.need <= 0
        assert "Nothing that was in use: the device had 2 MiB free" in page(found)

    def test_a_failure_whose_event_was_dropped(self):
        tree = empty(dropped=7)
        tree["failures"] = [
            {"event": -1, "message": "<it failed>", "cached": 1, "in_use": 2, "free": -1}
        ]
        text = page(replay(parse(tree)))
        assert "&lt;it failed&gt;" in text
        assert "7 events were dropped" in text


def test_an_empty_history():
    text = page(replay(parse(empty())))
    assert "There are no events." in text
    header, tables = data_of(text)
    assert header["rows"] == 0
    assert all(not column for table in tables.values() for column in table.values())


def test_names_are_text_and_not_html(tree):
    hostile = "</script><img src=x onerror=alert(1)>"
    tree["functions"] = [hostile for _ in tree["functions"]]
    tree["files"] = [hostile for _ in tree["files"]]
    tree["process"]["argv"] = ["$title ${data}", hostile]
    tree["failures"][0]["message"] = hostile
    text = page(replay(parse(tree)))
    assert "<img" not in text
    assert html.escape(hostile) in text
    assert "$title ${data}" in text


@pytest.mark.parametrize("name", ["history.json", "history.json.gz"])
def test_the_command(save, name):
    path = save(HISTORIES["small"], name)
    run = zeusm("report", path)
    assert (run.returncode, run.stderr) == (0, "")
    output = path.with_name("history.html")
    assert run.stdout == f"wrote {output}\n"
    assert output.read_text(encoding="utf-8") == page(replay(load(path)))
    other = path.with_name("other.html")
    assert zeusm("report", path, "-o", other).returncode == 0
    assert other.read_bytes() == output.read_bytes()
    text = zeusm("summary", path)
    assert (text.returncode, text.stderr) == (0, "")
    assert text.stdout.splitlines() == "\n".join(summary(replay(load(path)))).splitlines()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "other"}, 'it is not an allocation history: "format" is not'),
        ({"version": 2}, "it is of version 2, and this zeusm reads up to version 1"),
        ({"version": True}, '"version" is bool, not int'),
        ({"events": {}}, '"address" is missing'),
        ({"stacks": [[0]]}, '"stacks[0]" has 0, which is out of range'),
        ({"kinds": [1]}, '"kinds" is not a list of strings'),
        ({"dropped": -1}, '"dropped" is -1, which is out of range'),
        ({"files": ["\ud800"]}, '"files" has text that is not Unicode'),
        (
            {"slabs": {name: [1] if name == "size" else [] for name in SLAB}},
            "have different lengths",
        ),
    ],
)
def test_what_is_wrong_is_named(save, change, reason):
    run = zeusm("report", save(empty(**change)))
    assert run.returncode == 2
    assert reason in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert not run.stdout


def test_files_that_cannot_be_read(save, tmp_path):
    whole = gzip.compress(json.dumps(HISTORIES["small"]).encode())
    for path, reason in (
        (tmp_path / "absent", "No such file"),
        (tmp_path, OF_A_FOLDER),
        (save(b"", "nothing"), "no JSON"),
        (save(b"\x00\xff\x80", "bytes"), "no JSON"),
        (save(whole[:-9], "cut"), "damaged or truncated"),
        (save(whole[:200] + b"!!!" + whole[203:], "changed"), "damaged or truncated"),
        (save(b"[" * 100_000, "deep"), "nested too deeply"),
        (save(b"1" * 5000, "long"), "no JSON"),
        (save(json.dumps(HISTORIES["small"]).encode()[:-30], "half"), "no JSON"),
    ):
        run = zeusm("report", path)
        assert run.returncode == 2, run
        assert reason in run.stderr
        assert "Traceback" not in run.stderr
    run = zeusm("report", save(HISTORIES["small"]), "-o", tmp_path / "absent" / "page.html")
    assert run.returncode == 2
    assert "No such file" in run.stderr


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-2, 2), max_size=2),
    st.just({}),
)


def places_of(tree, path=()):
    """The paths of all values of a tree; of long lists, those of a few."""
    yield path
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from places_of(value, (*path, name))
    elif isinstance(tree, list):
        for index in {0, len(tree) // 2, len(tree) - 1} & set(range(len(tree))):
            yield from places_of(tree[index], (*path, index))


PATHS = sorted(filter(None, places_of(HISTORIES["small"])), key=str)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES), min_size=1, max_size=3))
def test_any_change_is_shown_or_refused(changes):
    """Values of any type anywhere, and missing fields, are a reason, or a page; nothing else is raised."""
    tree = copy.deepcopy(HISTORIES["small"])
    for path, value in changes:
        at = tree
        for step in path[:-1]:
            try:
                at = at[step]
            except (IndexError, KeyError, TypeError):
                break
        else:
            last = path[-1]
            if isinstance(at, dict) and value is None:
                at.pop(last, None)
            elif isinstance(at, dict) or (
                isinstance(at, list) and isinstance(last, int) and last < len(at)
            ):
                at[last] = copy.deepcopy(value)
    try:
        found = replay(parse(json.loads(json.dumps(tree))))
    except HistoryError:
        return
    outputs(found)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_order_of_events_is_shown(data):
    """Rows of valid values that do not fit together: everything is written, and no level is negative."""
    number = data.draw(st.integers(0, 30))
    ranges = {
        "time": (0, 100),
        "action": (0, 5),
        "address": (0, 6),
        "size": (0, 9),
        "kind": (0, 2),
        "device": (-1, 0),
        "pool": (-1, 2),
        "thread": (-1, 0),
        "stack": (-1, -1),
        "hit": (-1, 1),
    }
    tree = empty()
    for name, (low, high) in ranges.items():
        column = st.lists(st.integers(low, high), min_size=number, max_size=number)
        tree["events"][name] = [
            value * 4096 if name == "address" else value for value in data.draw(column)
        ]
    for name, column in (("blocks", BLOCK), ("slabs", SLAB)):
        count = data.draw(st.integers(0, 3))
        tree[name] = {
            each: data.draw(
                st.lists(st.integers(*ranges.get(each, (0, 9))), min_size=count, max_size=count)
            )
            for each in column
        }
    found = replay(parse(tree))
    for row in range(-1, number):
        assert moment(found, row).size >= 0
    outputs(found)


def outputs(found):
    """All pictures and exports."""
    from zeusm._pictures import flamegraph, perfetto, pytorch

    page(found)
    list(summary(found))
    list(perfetto.trace(found))
    pytorch.snapshot(found)
    flamegraph.picture(found, found.end, "the end")
    flamegraph.folded(found, found.peaks[None])
