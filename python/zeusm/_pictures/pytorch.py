"""The pickle that PyTorch's memory viewer reads (pytorch.org/memory_viz, torch/cuda/_memory_viz.py).

The viewer has devices and no kinds, so each place, a kind of memory of a device, is a device of its own; `allocator_settings`
names them. It requires each block to be in a segment when it is allocated and freed, and the blocks of a segment, with the
holes as inactive blocks, to follow each other without gaps. Its numbers are JavaScript's.
"""

import pickle
from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path

from zeusm._pictures.replay import Interval, Replay, finder, live_at
from zeusm._pictures.text import frames

Tree = dict[str, object]
Stacks = Callable[[int], list[Tree]]
#: The newest protocol that the viewer reads.
PROTOCOL = 4
#: Integers are exact in JavaScript up to this one.
EXACT = 2**53
#: Segments up to this size are "small", as PyTorch's are.
SMALL = 2 << 20


def write(replay: Replay, path: Path) -> None:
    path.write_bytes(pickle.dumps(snapshot(replay), protocol=PROTOCOL))


def snapshot(replay: Replay) -> Tree:
    """The tree that the viewer reads."""
    stacks = frames_of(replay)
    segments = enclose(replay)
    names = {f"device {place}": replay.place_name(place) for place in range(len(replay.places))}
    return {
        "segments": at_the_end(replay, segments, stacks),
        "device_traces": traces(replay, list(segments.values()), stacks),
        "allocator_settings": {"zeusm": replay.history.zeusm, **names},
    }


def frames_of(replay: Replay) -> Stacks:
    """The frames of each stack, made once: the pickle then has them once."""

    @cache
    def found(stack: int) -> list[Tree]:
        return [
            {"filename": file, "line": line, "name": function}
            for file, line, function in frames(replay.history, stack)
        ]

    return found


def shown(address: int) -> int:
    """The address that the viewer is given. A device's addresses in the upper half keep the 48 bits that tell them apart."""
    return address if address < EXACT else address & (1 << 48) - 1


def enclose(replay: Replay) -> dict[Interval, Interval]:
    """The segments by their regions or, of blocks without a region, by the block. A segment lasts as long as its blocks."""
    found = {region: copy(region) for region in replay.regions}
    for block in replay.blocks:
        if block.region is None:
            found[block] = copy(block)
        else:
            segment = found[block.region]
            segment.last = max(segment.last, block.last)
    return found


def traces(replay: Replay, segments: list[Interval], stacks: Stacks) -> list[list[Tree]]:
    """The events of each place. Within a row, blocks end before their segments, and segments begin before their blocks."""
    steps: list[tuple[int, int, int]] = []
    for intervals, end, begin in ((replay.blocks, 0, 3), (segments, 1, 2)):
        for number, each in enumerate(intervals):
            if each.first >= 0:
                steps.append((each.first, begin, number))
            if each.last < replay.rows:
                steps.append((each.last, end, number))
    steps += [(failure.event, 4, number) for number, failure in enumerate(replay.history.failures)]
    found: list[list[Tree]] = [[] for _ in replay.places]
    for row, phase, number in sorted(steps):
        if row < 0:
            continue  # A failure whose event was dropped.
        if phase == 4:
            events, failure = replay.history.events, replay.history.failures[number]
            place = replay.places.index((events.kind[row], events.device[row]))
            tree = {"action": "oom", "size": events.size[row], "device_free": max(failure.free, 0)}
            found[place].append(tree | common(replay, row, stacks(events.stack[row])))
            continue
        each = (replay.blocks if phase in (0, 3) else segments)[number]
        stack = stacks(each.stack if phase >= 2 else replay.history.events.stack[row])
        # The viewer joins a request and the completion behind it to one free.
        for action in (
            ("free_requested", "free_completed"),
            ("segment_free",),
            ("segment_alloc",),
            ("alloc",),
        )[phase]:
            tree = {"action": action, "addr": shown(each.address), "size": each.size}
            found[each.place].append(tree | common(replay, row, stack))
    return found


def common(replay: Replay, row: int, stack: list[Tree]) -> Tree:
    time = (replay.history.start + replay.time[row]) // 1000
    return {"stream": 0, "time_us": time, "frames": stack}


def at_the_end(replay: Replay, segments: dict[Interval, Interval], stacks: Stacks) -> list[Tree]:
    """The segments that are there at the end, with their blocks and holes."""
    members: dict[Interval, list[Interval]] = {
        each: [] for each in live_at(segments.values(), replay.end)
    }
    for block in live_at(replay.blocks, replay.end):
        members[segments[block.region or block]].append(block)
    slot = occupied(replay)
    return [segment(each, blocks, slot, stacks) for each, blocks in members.items()]


def occupied(replay: Replay) -> Callable[[int, int], int]:
    """The bytes that a block at an address occupies: the size class of its slab."""
    slabs = replay.history.slabs
    slab_at = finder(slabs.address, slabs.size)

    def of(address: int, size: int) -> int:
        slab = slab_at(address)
        return max(slabs.block[slab] or slabs.size[slab], size) if slab >= 0 else size

    return of


def segment(
    whole: Interval,
    members: list[Interval],
    slot: Callable[[int, int], int],
    stacks: Stacks,
) -> Tree:
    start, total = whole.address, whole.size
    found: list[Tree] = []
    at = start

    def add(state: str, size: int, requested: int, frames_of: list[Tree]) -> None:
        nonlocal at
        tree: Tree = {"address": shown(at), "size": size, "requested_size": requested}
        found.append({**tree, "state": state, "frames": frames_of})
        at += size

    ordered = sorted(members, key=lambda each: each.address)
    for index, each in enumerate(ordered, 1):
        address, size = each.address, each.size
        end = ordered[index].address if index < len(ordered) else start + total
        if not at <= address < end:
            continue  # Blocks of a damaged file may overlap.
        if address > at:
            add("inactive", address - at, 0, [])
        length = min(slot(address, size), end - address)
        add("active_allocated", length, min(size, length), stacks(each.stack))
    if at < start + total:
        add("inactive", start + total - at, 0, [])
    active = [tree for tree in found if tree["state"] == "active_allocated"]
    allocated = sum(int(str(tree["size"])) for tree in active)
    return {
        "device": whole.place,
        "address": shown(start),
        "total_size": total,
        "allocated_size": allocated,
        "active_size": allocated,
        "requested_size": sum(int(str(tree["requested_size"])) for tree in active),
        "stream": 0,
        "segment_type": "small" if total <= SMALL else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": stacks(whole.stack),
        "blocks": found,
    }
