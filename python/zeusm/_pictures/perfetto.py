"""Perfetto's trace, in the JSON format of Chrome's tracing that it reads: counters of bytes by kind, instants for failures and
trims, slices for operations."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from zeusm._pictures.file import History, Operations
from zeusm._pictures.replay import Interval, Replay, changes, live_at
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
    yield from slices(history)


def levels(replay: Replay, intervals: list[Interval], place: int) -> Iterator[tuple[int, int]]:
    """Time and bytes, at the beginning and after each time of a change."""
    intervals = [each for each in intervals if each.place == place]
    level = sum(each.size for each in live_at(intervals, -1))
    last = 0, level
    for row, sign, each in changes(intervals, replay.rows):
        time = replay.time[row]
        if time != last[0]:
            yield last
        level += sign * each.size
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


def slices(history: History) -> Iterator[Event]:
    """A slice for each operation. The slices of a track do not overlap."""
    operations = history.operations
    for number, rows in enumerate(tracks(operations), len(history.threads) + 1):
        args: Event = {"name": title(operations, rows)}
        yield {"ph": "M", "name": "thread_name", "pid": history.pid, "tid": number, "args": args}
        for row in rows:
            yield {
                "ph": "X",
                "name": operations.name[row],
                "pid": history.pid,
                "tid": number,
                "ts": operations.time[row] / 1000,
                "dur": operations.duration[row] / 1000,
                "args": {"bytes": operations.size[row]},
            }


def title(operations: Operations, rows: list[int]) -> str:
    device, queues = operations.device[rows[0]], sorted({operations.queue[row] for row in rows})
    if len(queues) == 1:
        return f"device {device}, queue {queues[0]}"
    return f"device {device}, {len(queues)} queues from {queues[0]} to {queues[-1]}"


def tracks(operations: Operations) -> list[list[int]]:
    """The rows of each track: of a queue, or of several queues of a device after each other: staged copies have queues of
    their own. A queue whose operations overlap has several tracks."""
    device, queue, time = operations.device, operations.queue, operations.time
    rows = [[row] for row in sorted(range(len(time)), key=time.__getitem__)]
    runs = joined(operations, rows, lambda row: (device[row], queue[row]))
    return joined(operations, runs, lambda row: device[row])


def joined(
    operations: Operations, parts: list[list[int]], group: Callable[[int], object]
) -> list[list[int]]:
    """Join the rows of one group that follow each other without overlaps, by the times of their beginnings."""
    found: dict[object, list[list[int]]] = {}
    for part in parts:
        lanes = found.setdefault(group(part[0]), [])
        for lane in lanes:
            end = operations.time[lane[-1]] + operations.duration[lane[-1]]
            if end <= operations.time[part[0]]:
                lane += part
                break
        else:
            lanes.append(list(part))
    every = [lane for lanes in found.values() for lane in lanes]
    return sorted(every, key=lambda rows: operations.time[rows[0]])
