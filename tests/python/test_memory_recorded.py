"""Histories that zeusm recorded, in the report and the exports."""

import pickle
import subprocess
import sys
import threading

import pytest
import zeusm.memory as zm
from test_memory_export import Viewer
from zeusm._pictures import perfetto, pytorch
from zeusm._pictures.failures import remedy
from zeusm._pictures.file import load, parse
from zeusm._pictures.moments import moment
from zeusm._pictures.page import page
from zeusm._pictures.replay import live_at, replay

pytestmark = pytest.mark.once


def hold(kept, *, pool=None):
    kept.append(zm.MemoryUSMDevice(3000, pool=pool))


@pytest.fixture
def recorded(tmp_path):
    """The history of a program, as saved, and what it held at its end."""
    kept = []
    before = zm.MemoryUSMShared(5000)
    with zm.record_history() as history:
        own = zm.MemoryPool("device", limit=1 << 20)
        for number in range(200):
            hold(kept, pool=own if number % 2 else None)
            if number % 7 == 0:
                kept.append(zm.MemoryUSMHost(50_000, pool=False))
            if number % 40 == 0:
                del kept[::2]
                zm.get_pool("device").free_all_blocks()
        thread = threading.Thread(target=lambda: [hold(kept) for _ in range(20)])
        thread.start()
        thread.join()
        del before
        with pytest.raises(zm.USMAllocationError):
            own.malloc(1_000_000)
        history.save(tmp_path / "history.json.gz")
    return replay(load(tmp_path / "history.json.gz")), kept


def test_the_replay_ends_where_the_recording_did(recorded):
    """The events lead to the blocks and slabs of the file, and to the objects that are held."""
    found, kept = recorded
    assert found.problems == {}
    history = found.history
    live = {each.address: each.size for each in live_at(found.blocks, found.end)}
    assert live == dict(zip(history.blocks.address, history.blocks.size, strict=True))
    assert {each._pointer: each.nbytes for each in kept}.items() <= live.items()
    held = {each.address: each.size for each in live_at(found.regions, found.end)}
    assert held == dict(zip(history.slabs.address, history.slabs.size, strict=True))
    assert all(block.region for block in found.blocks)


def test_who_held_it(recorded):
    found, kept = recorded
    stacks = found.history.stacks
    frames, functions = found.history.frames, found.history.functions
    mine = sum(
        holder.size
        for holder in moment(found, found.end).holders
        if holder.stack >= 0 and functions[frames.function[stacks[holder.stack][0]]] == "hold"
    )
    assert mine == sum(each.nbytes for each in kept if each.nbytes == 3000)


def test_the_limit_of_the_pool_is_named(recorded):
    found, _ = recorded
    way = remedy(found, found.history.failures[-1])
    assert way.limit == 1 << 20
    assert 0 < way.need < 1 << 20
    assert {each.blocks > 0 for each in way.stacks} == {True}
    assert "A higher limit of the pool" in page(found)


def test_dropped_events_are_named_by_the_export(tmp_path):
    memory = zm.MemoryUSMDevice(1 << 20)
    with zm.record_history(max_events=2) as history:
        for _ in range(5):
            memory.memset(1)
            zm.MemoryUSMDevice(100).close()
    history.save(tmp_path / "history.json")
    command = [sys.executable, "-m", "zeusm", "memory", "export", tmp_path / "history.json", "--to"]
    run = subprocess.run([*command, "perfetto"], capture_output=True, text=True)
    assert run.returncode == 0
    assert "3 operations were dropped" in run.stderr
    assert "events were dropped" in run.stderr
    run = subprocess.run([*command, "perfetto", "--at", "peak"], capture_output=True, text=True)
    assert run.returncode == 2
    assert "--at is for flame graphs" in run.stderr


def test_operations_are_slices_in_the_track_of_their_queue():
    memory = zm.MemoryUSMDevice(1 << 20)
    with zm.record_history() as history:
        memory.memset(1)
        memory.copy_from_device(zm.MemoryUSMDevice(3000))
    events = list(perfetto.trace(replay(parse(history.snapshot()))))
    slices = [event for event in events if event["ph"] == "X"]
    found = [(slice["name"], slice["args"]["bytes"]) for slice in slices]
    assert found == [("fill", 1 << 20), ("copy", 3000)]
    assert len({slice["tid"] for slice in slices}) == 1
    assert all(slice["ts"] > 0 for slice in slices)


def test_the_snapshot_itself_and_the_viewer(recorded):
    """What `snapshot()` returns is read, too, and PyTorch's viewer can play a recording backwards."""
    found, _ = recorded
    parse(zm.snapshot())
    viewer = Viewer(pickle.dumps(pytorch.snapshot(found), protocol=4))
    # Other devices that the process knows have no events.
    levels = [
        sum(blocks.values())
        for device in range(len(found.places))
        for blocks in viewer.backwards(device)
    ]
    assert levels
    assert min(levels) >= 0
