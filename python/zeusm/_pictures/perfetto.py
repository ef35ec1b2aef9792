"""Perfetto's trace, in the JSON format of Chrome's tracing that it reads: counters of bytes by kind, instants for failures and
trims, slices for operations."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from zeusm._pictures.file import History, Operations
from zeusm._pictures.replay import Intervals, Replay, changes
from zeusm._pictures.text import frame, frames, size

Event = dict[str, object]


def write(replay: Replay, path: Path) -> None:
    """Write the trace, compressed if the name ends with .gz."""
    opener: Callable[..., TextIO] = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
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
    """A slice for each operation. The slices of a track do not overlap."""
    for number, track in enumerate(tracks(operations), len(history.threads) + 1):
        args: Event = {"name": track.name()}
        yield {"ph": "M", "name": "thread_name", "pid": history.pid, "tid": number, "args": args}
        for row in track.rows:
            yield {
                "ph": "X",
                "name": operations.name[row],
                "pid": history.pid,
                "tid": number,
                "ts": operations.time[row] / 1000,
                "dur": operations.duration[row] / 1000,
                "args": {"bytes": operations.size[row]},
            }


@dataclass(slots=True)
class Track:
    device: int
    queues: list[int]
    rows: list[int]
    end: int

    def name(self) -> str:
        numbers = sorted(set(self.queues))
        if len(numbers) == 1:
            return f"device {self.device}, queue {numbers[0]}"
        return f"device {self.device}, {len(numbers)} queues from {numbers[0]} to {numbers[-1]}"


def tracks(operations: Operations) -> list[Track]:
    """A track for each queue, or for several queues of a device after each other: staged copies have queues of their own."""
    found: list[Track] = []
    for rows in runs(operations):
        device, queue = operations.device[rows[0]], operations.queue[rows[0]]
        begin = operations.time[rows[0]]
        for track in found:
            if track.device == device and track.end <= begin:
                break
        else:
            track = Track(device, [], [], 0)
            found.append(track)
        track.queues.append(queue)
        track.rows += rows
        track.end = operations.time[rows[-1]] + operations.duration[rows[-1]]
    return found


def runs(operations: Operations) -> list[list[int]]:
    """The rows of each queue by time, without overlaps: a queue whose operations overlap has several runs."""
    found: dict[tuple[int, int], list[list[int]]] = {}
    for row in sorted(range(len(operations.time)), key=lambda row: operations.time[row]):
        lanes = found.setdefault((operations.device[row], operations.queue[row]), [])
        for lane in lanes:
            if operations.time[lane[-1]] + operations.duration[lane[-1]] <= operations.time[row]:
                lane.append(row)
                break
        else:
            lanes.append([row])
    every = [lane for lanes in found.values() for lane in lanes]
    return sorted(every, key=lambda rows: operations.time[rows[0]])
