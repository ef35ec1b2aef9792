"""From events to intervals: each block, and each piece of memory from the driver, with the rows that begin and end it."""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from zeusm._pictures.file import Blocks, History, Slabs


@dataclass(slots=True)
class Intervals:
    """Memory that was held from row `first` (-1: since before the recording) to row `last` (the number of rows: to its end)."""

    address: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    pool: list[int] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    hit: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.address)

    def live_at(self, row: int) -> list[int]:
        """The numbers of those that are live after a row."""
        return [
            number
            for number, (first, last) in enumerate(zip(self.first, self.last, strict=True))
            if first <= row < last
        ]


@dataclass(eq=False)
class Replay:
    """The intervals of a history.

    `places` are the pairs of kind and device that occur, `time` is that of the rows, never descending, `region_of` is the
    number of the region that each block is in, -1 if there is none, and `problems` says what does not fit together.
    """

    history: History
    places: list[tuple[int, int]]
    time: list[int]
    blocks: Intervals
    regions: Intervals
    region_of: list[int]
    problems: Counter[str]

    @property
    def rows(self) -> int:
        return len(self.time)

    @property
    def end(self) -> int:
        """The last row; -1, the beginning, if there are none."""
        return len(self.time) - 1

    @cached_property
    def changes(self) -> list[tuple[int, int, int]]:
        """Row, block and sign of each beginning and end of a block within the recording."""
        return list(changes(self.blocks, self.rows))

    @cached_property
    def peaks(self) -> dict[int | None, int]:
        """The first row after which the bytes in use are the most: of each place, and of all under None."""
        blocks = self.blocks
        level: dict[int | None, int] = dict.fromkeys([None, *range(len(self.places))], 0)
        for number in blocks.live_at(-1):
            for key in (None, blocks.place[number]):
                level[key] += blocks.size[number]
        most = dict(level)
        best = dict.fromkeys(level, -1)
        for row, number, sign in self.changes:
            by = sign * blocks.size[number]
            for key in (None, blocks.place[number]):
                level[key] += by
                if level[key] > most[key]:
                    most[key], best[key] = level[key], row
        return best

    def place_name(self, place: int) -> str:
        """The name of a place: its kind, with the device if memory of several is in the history."""
        kind, device = self.places[place]
        name = self.history.kinds[kind]
        if device < 0 or len({each for _, each in self.places if each >= 0}) < 2:
            return name
        return f"{name} (device {self.history.devices[device].index})"


def replay(history: History) -> Replay:
    events = history.events
    problems: Counter[str] = Counter()
    tables = (events, history.blocks, history.slabs)
    places = sorted(
        {pair for table in tables for pair in zip(table.kind, table.device, strict=True)}
    )
    number_of = {pair: number for number, pair in enumerate(places)}
    blocks = pair_up(history, ("allocate", "free"), number_of, history.blocks, problems)
    regions = pair_up(history, ("reserve", "release"), number_of, history.slabs, problems)
    return Replay(
        history=history,
        places=places,
        time=list(accumulate(events.time, max)),
        blocks=blocks,
        regions=regions,
        region_of=enclosing(blocks, regions, len(events.time)),
        problems=problems,
    )


def pair_up(
    history: History,
    actions: tuple[str, str],
    number_of: dict[tuple[int, int], int],
    at_the_end: Blocks | Slabs,
    problems: Counter[str],
) -> Intervals:
    """The intervals between a beginning and an end of one address."""
    events, found = history.events, Intervals()
    begin, end = (
        history.actions.index(name) if name in history.actions else -1 for name in actions
    )
    live: dict[int, int] = {}
    seen: set[int] = set()
    rows = len(events.time)

    def add(row: int, first: int, last: int, *, is_known: bool) -> None:
        found.address.append(events.address[row])
        found.size.append(events.size[row])
        found.place.append(number_of[events.kind[row], events.device[row]])
        found.pool.append(events.pool[row])
        found.stack.append(events.stack[row] if is_known else -1)
        found.thread.append(events.thread[row] if is_known else -1)
        found.hit.append(events.hit[row] if is_known else -1)
        found.first.append(first)
        found.last.append(last)

    for row, (action, address) in enumerate(zip(events.action, events.address, strict=True)):
        if action not in (begin, end):
            continue
        if address == 0:  # An empty block has no address.
            if events.size[row]:
                problems[f"{actions[action == end]} of bytes at address 0"] += 1
            continue
        if action == begin:
            if address in live:
                problems[f"{actions[0]} of an address that is live"] += 1
                found.last[live[address]] = row
            live[address] = len(found)
            add(row, row, rows, is_known=True)
        elif address in live:
            found.last[live.pop(address)] = row
        elif address in seen:
            problems[f"{actions[1]} of an address twice"] += 1
        else:
            add(row, -1, row, is_known=False)
        seen.add(address)
    older(found, live, seen, number_of, at_the_end, rows)
    return found


def older(
    found: Intervals,
    live: dict[int, int],
    seen: set[int],
    number_of: dict[tuple[int, int], int],
    at_the_end: Blocks | Slabs,
    rows: int,
) -> None:
    """Add what was there before the recording and is there at its end. A slab that is a part of a live region is none."""
    starts = sorted(live)
    live_at = finder(starts, [found.size[live[start]] for start in starts])
    for row, address in enumerate(at_the_end.address):
        if address == 0 or address in seen or live_at(address) >= 0:
            continue
        found.address.append(address)
        found.size.append(at_the_end.size[row])
        found.place.append(number_of[at_the_end.kind[row], at_the_end.device[row]])
        found.pool.append(at_the_end.pool[row])
        found.stack.append(at_the_end.stack[row] if isinstance(at_the_end, Blocks) else -1)
        found.thread.append(-1)
        found.hit.append(-1)
        found.first.append(-1)
        found.last.append(rows)


def enclosing(blocks: Intervals, regions: Intervals, rows: int) -> list[int]:
    """The region that each block is in when it begins."""
    found = [-1] * len(blocks)
    at: dict[int, int] = {}
    starts: list[int] = []
    for kind, number in steps(regions, blocks, rows):
        if kind == "begin region":
            if regions.address[number] not in at:
                insort(starts, regions.address[number])
            at[regions.address[number]] = number
        elif kind == "end region":
            if at.get(regions.address[number]) == number:
                del at[regions.address[number]]
                starts.pop(bisect_right(starts, regions.address[number]) - 1)
        else:
            address = blocks.address[number]
            below = bisect_right(starts, address) - 1
            if below >= 0:
                region = at[starts[below]]
                if address + blocks.size[number] <= regions.address[region] + regions.size[region]:
                    found[number] = region
    return found


def steps(regions: Intervals, blocks: Intervals, rows: int) -> Iterator[tuple[str, int]]:
    """Beginnings and ends of regions, and beginnings of blocks, in the order of their rows."""
    for number in regions.live_at(-1):
        yield "begin region", number
    for number in blocks.live_at(-1):
        yield "begin block", number
    regions_begin, regions_end = by_row(regions.first, rows), by_row(regions.last, rows)
    blocks_begin = by_row(blocks.first, rows)
    for row in range(rows):
        if regions_end[row] >= 0:
            yield "end region", regions_end[row]
        if regions_begin[row] >= 0:
            yield "begin region", regions_begin[row]
        if blocks_begin[row] >= 0:
            yield "begin block", blocks_begin[row]


def changes(intervals: Intervals, rows: int) -> Iterator[tuple[int, int, int]]:
    """Row, number and sign of each beginning and end within the recording, ends first within a row."""
    begins, ends = by_row(intervals.first, rows), by_row(intervals.last, rows)
    for row in range(rows):
        if ends[row] >= 0:
            yield row, ends[row], -1
        if begins[row] >= 0:
            yield row, begins[row], 1


def finder(addresses: list[int], sizes: list[int]) -> Callable[[int], int]:
    """Return the function that finds the row whose range of addresses has an address; -1 if none has."""
    order = sorted(range(len(addresses)), key=addresses.__getitem__)
    starts = [addresses[row] for row in order]

    def find(address: int) -> int:
        below = bisect_right(starts, address) - 1
        row = order[below] if below >= 0 else -1
        return row if row >= 0 and address < addresses[row] + sizes[row] else -1

    return find


def by_row(column: Iterable[int], rows: int) -> list[int]:
    """The interval that each row begins, or ends, by the column of rows: one at most; -1 if there is none."""
    found = [-1] * rows
    for number, row in enumerate(column):
        if 0 <= row < rows:
            found[row] = number
    return found
