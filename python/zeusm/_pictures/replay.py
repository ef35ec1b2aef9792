"""From events to intervals: each block, and each piece of memory from the driver, with the rows that begin and end it."""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import itemgetter

from zeusm._pictures.file import Blocks, History, Memory, Slabs


@dataclass(slots=True, eq=False)
class Interval:
    """Memory that was held from row `first` (-1: since before the recording) to row `last` (the number of rows: to its end)."""

    address: int
    size: int
    place: int
    pool: int
    first: int
    last: int
    stack: int = -1
    thread: int = -1
    hit: int = -1
    #: The region that a block is in when it begins.
    region: "Interval | None" = None


def live_at(intervals: Iterable[Interval], row: int) -> list[Interval]:
    """Those that are live after a row."""
    return [each for each in intervals if each.first <= row < each.last]


@dataclass(eq=False)
class Replay:
    """The intervals of a history.

    `places` are the pairs of kind and device that occur, `time` is that of the rows, never descending, and `problems` says what
    does not fit together.
    """

    history: History
    places: list[tuple[int, int]]
    time: list[int]
    blocks: list[Interval]
    regions: list[Interval]
    problems: Counter[str]

    @property
    def rows(self) -> int:
        return len(self.time)

    @property
    def end(self) -> int:
        """The last row; -1, the beginning, if there are none."""
        return len(self.time) - 1

    @cached_property
    def changes(self) -> list[tuple[int, int, Interval]]:
        return changes(self.blocks, self.rows)

    @cached_property
    def peaks(self) -> dict[int | None, int]:
        """The first row after which the bytes in use are the most: of each place, and of all under None."""
        level: dict[int | None, int] = dict.fromkeys([None, *range(len(self.places))], 0)
        for block in live_at(self.blocks, -1):
            for key in (None, block.place):
                level[key] += block.size
        most = dict(level)
        best = dict.fromkeys(level, -1)
        for row, sign, block in self.changes:
            for key in (None, block.place):
                level[key] += sign * block.size
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
    enclose(blocks, regions)
    return Replay(history, places, list(accumulate(events.time, max)), blocks, regions, problems)


def pair_up(
    history: History,
    actions: tuple[str, str],
    number_of: dict[tuple[int, int], int],
    at_the_end: Blocks | Slabs,
    problems: Counter[str],
) -> list[Interval]:
    """The intervals between a beginning and an end of one address."""
    events = history.events
    found: list[Interval] = []
    begin, end = (
        history.actions.index(name) if name in history.actions else -1 for name in actions
    )
    live: dict[int, Interval] = {}
    seen: set[int] = set()
    rows = len(events.time)

    def add(table: Memory, row: int, first: int, last: int) -> Interval:
        place = number_of[table.kind[row], table.device[row]]
        each = Interval(table.address[row], table.size[row], place, table.pool[row], first, last)
        found.append(each)
        return each

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
                live[address].last = row
            live[address] = new = add(events, row, row, rows)
            new.stack, new.thread, new.hit = events.stack[row], events.thread[row], events.hit[row]
        elif address in live:
            live.pop(address).last = row
        elif address in seen:
            problems[f"{actions[1]} of an address twice"] += 1
        else:
            add(events, row, -1, row)
        seen.add(address)
    # What was there before the recording and is there at its end. A slab that is a part of a live region is none.
    region_at = finder(list(live), [each.size for each in live.values()])
    for row, address in enumerate(at_the_end.address):
        if address and address not in seen and region_at(address) < 0:
            old = add(at_the_end, row, -1, rows)
            if isinstance(at_the_end, Blocks):
                old.stack = at_the_end.stack[row]
    return found


def enclose(blocks: list[Interval], regions: list[Interval]) -> None:
    """Find the region that each block is in when it begins. Within a row, regions end before others begin, and blocks last."""
    at: dict[int, Interval] = {}
    starts: list[int] = []
    steps = [(each.last, 0, each) for each in regions]
    steps += [(each.first, 1, each) for each in regions]
    steps += [(each.first, 2, each) for each in blocks]
    for _, phase, each in sorted(steps, key=itemgetter(0, 1)):
        if phase == 0:
            if at.get(each.address) is each:
                del at[each.address]
                starts.pop(bisect_right(starts, each.address) - 1)
        elif phase == 1:
            if each.address not in at:
                insort(starts, each.address)
            at[each.address] = each
        elif below := bisect_right(starts, each.address):
            region = at[starts[below - 1]]
            if each.address + each.size <= region.address + region.size:
                each.region = region


def changes(intervals: list[Interval], rows: int) -> list[tuple[int, int, Interval]]:
    """Row, sign and interval of each beginning and end within the recording, ends first within a row."""
    found = [(each.first, 1, each) for each in intervals if each.first >= 0]
    found += [(each.last, -1, each) for each in intervals if each.last < rows]
    return sorted(found, key=itemgetter(0, 1))


def finder(addresses: list[int], sizes: list[int]) -> Callable[[int], int]:
    """Return the function that finds the row whose range of addresses has an address; -1 if none has."""
    order = sorted(range(len(addresses)), key=addresses.__getitem__)
    starts = [addresses[row] for row in order]

    def find(address: int) -> int:
        below = bisect_right(starts, address) - 1
        row = order[below] if below >= 0 else -1
        return row if row >= 0 and address < addresses[row] + sizes[row] else -1

    return find
