"""A history's allocations and frees once more, in their order, by zeusm's allocator: what fails, and what the pools hold."""

from argparse import Namespace
from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import zeusm.memory as zm
from zeusm._pictures.replay import Interval, Replay, live_at
from zeusm._pictures.text import duration, head, size

ALLOCATE, FREE, ATTEMPT = 1, -1, 2
PAGE = 4096
#: The kind and the number of a pool; -1 is memory of none.
Key = tuple[str, int]
#: The row, what it does, with which memory and of which pool. An attempt is an allocation that failed in the program.
Step = tuple[int, int, Interval, Key]


@dataclass(slots=True)
class Use:
    """The bytes that the program has of a pool, the most that it had, and the most that the pool held."""

    live: int = 0
    peak: int = 0
    held: int = 0


def steps(found: Replay, kind: str | None, pools: str) -> list[Step]:
    """The steps in their order; first what is older than the recording."""
    history, events = found.history, found.history.events
    rows = [(-1, ALLOCATE, each) for each in live_at(found.blocks, -1)] + found.changes
    for row in {failure.event for failure in history.failures} - {-1}:
        place = found.places.index((events.kind[row], events.device[row]))
        asked = Interval(0, events.size[row], place, events.pool[row], row, row)
        rows.append((row, ATTEMPT, asked))

    def key(block: Interval) -> Key:
        own = history.kinds[found.places[block.place][0]]
        return kind or own, {"recorded": block.pool, "one": 0, "none": -1}[pools]

    return [(*each, key(each[2])) for each in sorted(rows, key=itemgetter(0, 1))]


def run(
    todo: list[Step], device: str | None, limit: int | None
) -> tuple[dict[Key, Use], tuple[int, str] | None]:
    """Do the steps: what was used of each pool, and the row and the reason of the first allocation that failed."""
    uses: dict[Key, Use] = {}
    pools: dict[Key, zm.MemoryPool] = {}
    memory: dict[Interval, object] = {}
    for row, step, block, key in todo:
        use = uses.setdefault(key, Use())
        if step == FREE:
            del memory[block]
            use.live -= block.size
            continue
        kind, number = key
        if number >= 0 and key not in pools:
            pools[key] = zm.MemoryPool(kind, queue=device, limit=limit)  # type: ignore[arg-type]
        pool = pools.get(key)
        without = partial(getattr(zm, f"MemoryUSM{kind.title()}"), queue=device, pool=False)
        try:
            memory[block] = pool.malloc(block.size) if pool else without(block.size)
        except zm.USMAllocationError as error:
            return uses, (row, str(error))
        use.live += block.size
        use.peak = max(use.peak, use.live)
        use.held = max(use.held, pool.total_bytes() if pool else 0)
        if step == ATTEMPT:
            del memory[block]
            use.live -= block.size
    return uses, None


def smallest_limit(todo: list[Step], device: str | None, use: Use) -> int:
    """The least limit of a pool with which its steps pass, and with a page less do not."""
    pages = range(use.peak // PAGE, -(-use.held // PAGE))  # What it held suffices.
    passes = partial(run, todo, device)
    first = bisect_left(pages, True, key=lambda number: passes(number * PAGE)[1] is None)
    return (pages.start + first) * PAGE


def report(found: Replay, options: Namespace) -> tuple[list[str], bool]:
    """What is to be said, and whether all allocations passed."""
    todo = steps(found, options.kind, options.pool)
    uses, failed = run(todo, options.device, options.limit)
    lines = [f"{found.rows:,} events: no allocation failed"]
    if failed:
        row, reason = failed
        by = head(found.history, found.history.events.stack[row])
        what = f"event {row}, at {duration(found.time[row])}, by {by}"
        lines = [f"failed: {what if row >= 0 else 'a block from before the recording'}", reason]
    for key, use in uses.items():
        kind, number = key
        line = f"{kind}, pool {number if number >= 0 else 'none'}: {size(use.peak)} live at most"
        if number >= 0 and use.peak:
            line += f", {size(use.held)} held, fragmentation {use.held / use.peak:.2f}"
            if options.smallest_limit and not failed:
                least = smallest_limit([s for s in todo if s[3] == key], options.device, use)
                line += f", smallest limit {least} bytes ({size(least)})"
        lines.append(line)
    return lines, failed is None
