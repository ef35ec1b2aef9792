"""Perfetto's trace, in the JSON format of Chrome's tracing that it reads: counters of bytes by kind, instants for failures and
trims, slices for operations."""

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO, cast

from zeusm._pictures.file import History, Operations
from zeusm._pictures.replay import Intervals, Replay, changes
from zeusm._pictures.text import frame, frames, size

Event = dict[str, object]


def write(replay: Replay, path: Path) -> None:
    """Write the trace, compressed if the name ends with .gz."""
    with ExitStack() as stack:
        if path.suffix == ".gz":
            file = cast(TextIO, stack.enter_context(gzip.open(path, "wt", encoding="utf-8")))
        else:
            file = stack.enter_context(path.open("w", encoding="utf-8"))
        file.write('{"displayTimeUnit":"ns","traceEvents":[')
        separator = "\n"
        for event in trace(replay):
            file.write(separator + json.dumps(event, separators=(",", ":")))
            separator = ",\n"
        file.write("\n]}\n")


def trace(replay: Replay) -> Iterator[Event]:
    """The events of the trace. Its times are microseconds."""
    history = replay.history
    process = {"pid": history.pid}
    name = " ".join(history.argv) or "Python"
    yield {"ph": "M", "name": "process_name", **process, "args": {"name": name}}
    # Threads have small numbers here: the identifiers of Python's threads do not fit the format.
    for tid, (number, thread) in enumerate(history.threads, 1):
        args = {"name": f"{thread or 'thread'} {number}"}
        yield {"ph": "M", "name": "thread_name", **process, "tid": tid, "args": args}
    for what, intervals in (("in use", replay.blocks), ("held", replay.regions)):
        for place in range(len(replay.places)):
            track = f"{what}: {replay.place_name(place)}"
            for time, level in levels(replay, intervals, place):
                args_of = {"bytes": level}
                yield {"ph": "C", "name": track, **process, "ts": time / 1000, "args": args_of}
    yield from instants(replay)
    if history.operations is not None:
        yield from slices(history, history.operations)


def levels(replay: Replay, intervals: Intervals, place: int) -> Iterator[tuple[int, int]]:
    """Time and bytes, at the beginning and after each time of a change."""
    level = sum(
        intervals.size[number]
        for number in intervals.live_at(-1)
        if intervals.place[number] == place
    )
    last = 0, level
    for row, number, sign in changes(intervals, replay.rows):
        if intervals.place[number] != place:
            continue
        time = replay.time[row]
        if time != last[0]:
            yield last
        level += sign * intervals.size[number]
        last = time, level
    yield last


def instants(replay: Replay) -> Iterator[Event]:
    history = replay.history
    events = history.events
    messages = {failure.event: failure.message for failure in history.failures}
    for row, action in enumerate(events.action):
        name = history.actions[action]
        if name not in ("trim", "fail"):
            continue
        place = replay.place_name(replay.places.index((events.kind[row], events.device[row])))
        what = "allocation failed" if name == "fail" else "trim"
        args: Event = {"bytes": events.size[row]}
        if row in messages:
            args["message"] = messages[row]
        if events.stack[row] >= 0:
            args["stack"] = [frame(each) for each in frames(history, events.stack[row])]
        yield {
            "ph": "i",
            "s": "p",
            "name": f"{what}: {size(events.size[row])} of {place}",
            "pid": history.pid,
            "tid": events.thread[row] + 1,
            "ts": replay.time[row] / 1000,
            "args": args,
        }


def slices(history: History, operations: Operations) -> Iterator[Event]:
    """A slice for each operation, in tracks for each queue: slices of a track must not overlap."""
    ends: dict[tuple[int, int], list[int]] = {}
    tids: dict[tuple[int, int, int], int] = {}
    order = sorted(range(len(operations.time)), key=lambda row: operations.time[row])
    for row in order:
        time, duration = operations.time[row], operations.duration[row]
        queue = operations.device[row], operations.queue[row]
        lanes = ends.setdefault(queue, [])
        lane = next((number for number, end in enumerate(lanes) if end <= time), len(lanes))
        if lane == len(lanes):
            lanes.append(0)
            tid = tids[(*queue, lane)] = len(history.threads) + 1 + len(tids)
            further = f", {lane + 1}" if lane else ""
            args: Event = {"name": f"device {queue[0]}, queue {queue[1]}{further}"}
            yield {"ph": "M", "name": "thread_name", "pid": history.pid, "tid": tid, "args": args}
        lanes[lane] = time + duration
        yield {
            "ph": "X",
            "name": operations.name[row],
            "pid": history.pid,
            "tid": tids[(*queue, lane)],
            "ts": time / 1000,
            "dur": duration / 1000,
            "args": {"bytes": operations.size[row]},
        }
