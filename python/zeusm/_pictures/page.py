"""The page: one HTML file with its data, its style and its program, which loads nothing."""

import base64
import gzip
import json
import struct
import sys
from array import array
from bisect import bisect_right
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template

from zeusm._pictures import tables
from zeusm._pictures.file import History
from zeusm._pictures.moments import own_peaks
from zeusm._pictures.replay import Interval, Replay, finder

ASSETS = files("zeusm._pictures") / "assets"
SCRIPTS = ("data.js", "view.js", "overtime.js", "blocks.js", "main.js")
#: Stacks that have a colour.
STACKS = 8
Columns = dict[str, tuple[str, list[int]]]


def page(replay: Replay) -> str:
    """The report of a history, as HTML."""
    history = replay.history
    script = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    program = history.argv[0].rsplit("/", 1)[-1] if history.argv and history.argv[0] else "Python"
    begin = datetime.fromtimestamp(history.start / 1e9, UTC)
    origin = (
        f"Process {history.pid} on {history.host}, {begin:%Y-%m-%d %H:%M:%S} UTC, Python {history.python}, zeusm {history.zeusm}. "
        + "; ".join(f"{device.name}" for device in history.devices)
    )
    return Template((ASSETS / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(f"Memory of {program}"),
        heading=escape(f"Memory of {' '.join([program, *history.argv[1:]])}"),
        origin=escape(origin),
        style=(ASSETS / "page.css").read_text(encoding="utf-8"),
        script=f"(() => {{\n{script}}})();",
        notes=tables.notes(replay),
        figures=tables.figures(replay),
        peak=tables.peaks(replay),
        failures=tables.failures(replay),
        slabs=tables.slabs(replay),
        end=tables.at_the_end(replay),
        churn=tables.churn(replay),
        data=base64.b64encode(pack(replay)).decode(),
    )


def pack(replay: Replay) -> bytes:
    """The data of the pictures: the length of a JSON header, the header, and the columns that it lists."""
    history = replay.history
    starts, positions, extent = layout(replay)
    tables_of = columns(replay, starts, positions)
    header = {
        "rows": replay.rows,
        "places": [replay.place_name(place) for place in range(len(replay.places))],
        "threads": [name or str(number) for number, name in history.threads],
        "files": history.files,
        "functions": history.functions,
        "frames": list(
            zip(history.frames.file, history.frames.line, history.frames.function, strict=True)
        ),
        "stacks": history.stacks,
        "topStacks": top_stacks(replay),
        "peak": replay.peaks[None],
        "fails": rows_of(history, "fail"),
        "trims": rows_of(history, "trim"),
        "extent": extent,
        "columns": [],
    }
    body = bytearray()
    for table, found in tables_of.items():
        for name, (code, values) in found.items():
            header["columns"].append([table, name, code, len(body), len(values)])  # type: ignore[attr-defined]
            column = array(code, values)
            if sys.byteorder == "big":
                column.byteswap()
            body += column.tobytes()
            body += bytes(-len(body) % 8)
    text = json.dumps(header, separators=(",", ":")).encode()
    padding = bytes(-len(text) % 8)  # The columns begin at a multiple of 8 bytes.
    return gzip.compress(struct.pack("<II", len(text), 0) + text + padding + body, 6, mtime=0)


def columns(replay: Replay, starts: list[int], positions: list[int]) -> dict[str, Columns]:
    """The numbers of the pictures, by table and column, each with the type code of its array."""
    history = replay.history

    def position(address: int) -> int:
        index = bisect_right(starts, address) - 1
        return positions[index] + address - starts[index]

    def of(intervals: list[Interval], **more: str) -> Columns:
        codes = {"size": "d", "first": "i", "last": "i", **more}
        found = {
            name: (code, [getattr(each, name) for each in intervals])
            for name, code in codes.items()
        }
        return found | {"position": ("d", [position(each.address) for each in intervals])}

    slabs, live = history.slabs, inside_slabs(history)
    return {
        "event": {"time": ("d", replay.time)},
        "block": of(replay.blocks, address="Q", place="i", stack="i", thread="i", hit="b"),
        "region": of(replay.regions),
        "slab": {
            "address": ("Q", slabs.address),
            "size": ("d", slabs.size),
            "block": ("d", slabs.block),
            "place": (
                "i",
                [replay.places.index(pair) for pair in zip(slabs.kind, slabs.device, strict=True)],
            ),
        },
        "live": {
            "slab": ("i", [slab for slab, _, _ in live]),
            "offset": ("d", [offset for _, offset, _ in live]),
            "size": ("d", [history.blocks.size[row] for _, _, row in live]),
            "stack": ("i", [history.blocks.stack[row] for _, _, row in live]),
        },
    }


def rows_of(history: History, action: str) -> list[int]:
    if action not in history.actions:
        return []
    number = history.actions.index(action)
    return [row for row, each in enumerate(history.events.action) if each == number]


def top_stacks(replay: Replay) -> list[int]:
    """The stacks that held most at their own peaks."""
    most = own_peaks(replay)
    return sorted(most, key=lambda stack: (-most[stack], stack))[:STACKS]


def spans(replay: Replay) -> list[tuple[int, int]]:
    """The ranges of addresses that memory was in at any time, without those between them."""
    found: list[tuple[int, int]] = []
    pairs = ((each.address, each.address + each.size) for each in replay.regions + replay.blocks)
    for start, end in sorted(pairs):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def layout(replay: Replay) -> tuple[list[int], list[int], int]:
    """Where each range of addresses begins, its place on the vertical axis, where they follow each other with a small gap, and the
    length of the axis."""
    found = spans(replay)
    gap = sum(end - start for start, end in found) // max(100, 4 * len(found))
    starts, positions, at = [], [], 0
    for start, end in found:
        starts.append(start)
        positions.append(at)
        at += end - start + gap
    return starts, positions, max(at - gap, 0)


def inside_slabs(history: History) -> list[tuple[int, int, int]]:
    """Slab, offset in it, and row of each live block that is in a slab."""
    slabs, blocks = history.slabs, history.blocks
    slab_at = finder(slabs.address, slabs.size)
    pairs = [(slab_at(address), row) for row, address in enumerate(blocks.address) if address]
    return [
        (slab, blocks.address[row] - slabs.address[slab], row) for slab, row in pairs if slab >= 0
    ]
