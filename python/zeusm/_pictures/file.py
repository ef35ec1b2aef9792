"""The file of an allocation history, checked."""

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from zeusm._history_columns import FORMAT, VERSION

Json = Any
Record = TypeVar("Record")


class HistoryError(ValueError):
    """The file is no history that this version can read; the message is the reason."""


@dataclass
class Memory:
    """The columns of each table of memory."""

    address: list[int]
    size: list[int]
    kind: list[int]
    device: list[int]
    pool: list[int]


@dataclass
class Events(Memory):
    """What happened, a row for each event; `action` indexes `History.actions`."""

    time: list[int]
    action: list[int]
    thread: list[int]
    stack: list[int]
    hit: list[int]


@dataclass
class Blocks(Memory):
    """The blocks that are live at the end; time and stack are -1 for those made before the recording."""

    stack: list[int]
    time: list[int]


@dataclass
class Slabs(Memory):
    """The memory that the pools hold at the end; `block` is the size class, 0 for a single block."""

    used: list[int]
    block: list[int]


@dataclass(slots=True)
class Frames:
    file: list[int]
    line: list[int]
    function: list[int]


@dataclass(slots=True)
class Operations:
    """Copies, fills and kernels with their times, where events were timed."""

    time: list[int]
    duration: list[int]
    name: list[str]
    device: list[int]
    queue: list[int]
    size: list[int]


@dataclass(slots=True)
class Failure:
    """A failed allocation; `event` is its row, -1 if the row was dropped, and `free` is -1 where it is unknown."""

    event: int
    message: str
    cached: int
    in_use: int
    free: int


@dataclass(slots=True)
class Device:
    name: str
    index: int
    total: int


@dataclass(slots=True)
class History:
    zeusm: str
    pid: int
    argv: list[str]
    python: str
    host: str
    start: int
    devices: list[Device]
    kinds: list[str]
    pools: int
    threads: list[tuple[int, str]]
    files: list[str]
    functions: list[str]
    frames: Frames
    stacks: list[list[int]]
    actions: list[str]
    events: Events
    failures: list[Failure]
    blocks: Blocks
    slabs: Slabs
    operations: Operations
    dropped: int
    dropped_operations: int


def load(path: Path) -> History:
    """Read a history, compressed or not.

    Raises
    ------
    HistoryError
        if the file is damaged, of another format or of a newer version.
    OSError
        if it cannot be read.
    """
    data = path.read_bytes()
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        tree = json.loads(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise HistoryError(f"the compressed data is damaged or truncated: {error}") from None
    except RecursionError:
        raise HistoryError("it is nested too deeply") from None
    except ValueError as error:
        raise HistoryError(f"it is no JSON, or truncated: {error}") from None
    return parse(tree)


def parse(tree: Json) -> History:
    """Check the parsed JSON of a file, or the dictionary of `zeusm.memory.snapshot()`."""
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise HistoryError(f'it is not an allocation history: "format" is not "{FORMAT}"')
    version = whole(tree, "version", 1)
    if version > VERSION:
        raise HistoryError(
            f"it is of version {version}, and this zeusm reads up to version {VERSION}: use a newer zeusm"
        )
    process = branch(tree, "process", dict)
    devices = [
        Device(text(each, "name"), whole(each, "index", -1), whole(each, "total", -1))
        for each in branch(tree, "devices", list)
    ]
    threads = [
        (whole(each, "id", -(2**63)), text(each, "name")) for each in branch(tree, "threads", list)
    ]
    kinds, actions = texts(tree, "kinds"), texts(tree, "actions")
    files, functions = texts(tree, "files"), texts(tree, "functions")
    pools = len(branch(tree, "pools", list))
    stacks = branch(tree, "stacks", list)
    number = (0, 2**63)
    #: The least value of the columns of each name, and the end of their range; times are -1 where they are unknown.
    bounds = {
        "action": (0, len(actions)),
        "address": (0, 2**64),
        "block": number,
        "device": (-1, len(devices)),
        "duration": number,
        "file": (0, len(files)),
        "function": (0, len(functions)),
        "hit": (-1, 2),
        "kind": (0, len(kinds)),
        "line": (-(2**31), 2**31),
        "pool": (-1, pools),
        "queue": (-1, 2**64),
        "size": number,
        "stack": (-1, len(stacks)),
        "thread": (-1, len(threads)),
        "time": (-1, 2**63),
        "used": number,
    }
    frames = columns(tree, "frames", Frames, bounds)
    for index, stack in enumerate(stacks):
        bounded(stack, f"stacks[{index}]", 0, len(frames.file))
    events = columns(tree, "events", Events, bounds)
    return History(
        zeusm=text(tree, "zeusm"),
        pid=whole(process, "pid", 0),
        argv=texts(process, "argv"),
        python=text(process, "python"),
        host=text(process, "host"),
        start=whole(branch(tree, "clock", dict), "start", 0),
        devices=devices,
        kinds=kinds,
        pools=pools,
        threads=threads,
        files=files,
        functions=functions,
        frames=frames,
        stacks=stacks,
        actions=actions,
        events=events,
        failures=[failure(each, len(events.time)) for each in branch(tree, "failures", list)],
        blocks=columns(tree, "blocks", Blocks, bounds),
        slabs=columns(tree, "slabs", Slabs, bounds),
        operations=columns(tree, "operations", Operations, bounds),
        dropped=whole(tree, "dropped", 0),
        dropped_operations=whole(tree, "dropped_operations", 0),
    )


def failure(tree: Json, rows: int) -> Failure:
    event = whole(tree, "event", -1)
    if event >= rows:
        raise HistoryError(f"a failure refers to event {event}, and there are {rows}")
    numbers = [
        whole(tree, name, least) for name, least in (("cached", 0), ("in_use", 0), ("free", -1))
    ]
    return Failure(event, text(tree, "message"), *numbers)


def branch(tree: Json, name: str, kind: type) -> Json:
    """Return the field of a dictionary, of the given type."""
    if not isinstance(tree, dict):
        raise HistoryError(f'the parent of "{name}" is {type(tree).__name__}, not an object')
    if name not in tree:
        raise HistoryError(f'"{name}" is missing')
    if type(tree[name]) is not kind:
        raise HistoryError(f'"{name}" is {type(tree[name]).__name__}, not {kind.__name__}')
    return tree[name]


def whole(tree: Json, name: str, least: int) -> int:
    value: int = branch(tree, name, int)
    if not least <= value < 2**63:
        raise HistoryError(f'"{name}" is {value}, which is out of range')
    return value


def text(tree: Json, name: str) -> str:
    value: str = branch(tree, name, str)
    check_texts([value], name)
    return value


def texts(tree: Json, name: str) -> list[str]:
    found: list[str] = branch(tree, name, list)
    check_texts(found, name)
    return found


def check_texts(found: Json, name: str) -> None:
    """Refuse other objects than strings, and halves of surrogate pairs, which JSON can express and UTF-8 cannot."""
    if not set(map(type, found)) <= {str}:
        raise HistoryError(f'"{name}" is not a list of strings')
    try:
        "".join(found).encode()
    except UnicodeEncodeError:
        raise HistoryError(f'"{name}" has text that is not Unicode') from None


def columns(
    tree: Json, name: str, record: Callable[..., Record], bounds: dict[str, tuple[int, int]]
) -> Record:
    """Return a table of columns of one length, of integers in the bounds of their name or, without any, of strings."""
    table = branch(tree, name, dict)
    found = {}
    for field in fields(record):  # type: ignore[arg-type]
        found[field.name] = column = branch(table, field.name, list)
        if field.name in bounds:
            bounded(column, f"{name}.{field.name}", *bounds[field.name])
        else:
            check_texts(column, f"{name}.{field.name}")
    if len(set(map(len, found.values()))) > 1:
        raise HistoryError(f'the columns of "{name}" have different lengths')
    return record(**found)


def bounded(column: Json, name: str, least: int, end: int) -> None:
    """Check that a column has integers from `least` to `end` - 1 only."""
    if type(column) is not list or not set(map(type, column)) <= {int}:
        raise HistoryError(f'"{name}" is not a list of integers')
    for value in (min(column, default=least), max(column, default=least)):
        if not least <= value < end and column:
            raise HistoryError(f'"{name}" has {value}, which is out of range')
