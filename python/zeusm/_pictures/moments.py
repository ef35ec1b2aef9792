"""Who held memory at a moment: the peaks, the end, and the stacks by bytes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from zeusm._pictures.replay import Interval, Replay, live_at


@dataclass(slots=True)
class Holder:
    """The live blocks of one stack and one place."""

    stack: int
    place: int
    size: int
    blocks: int


@dataclass(slots=True)
class Moment:
    """The state after a row (-1: at the beginning of the recording)."""

    row: int
    size: int
    blocks: int
    holders: list[Holder]


def holders(blocks: Iterable[Interval]) -> list[Holder]:
    """Sum up blocks by their stacks and places, most bytes first."""
    found: dict[tuple[int, int], Holder] = {}
    for block in blocks:
        key = block.stack, block.place
        holder = found.setdefault(key, Holder(*key, 0, 0))
        holder.size += block.size
        holder.blocks += 1
    return sorted(
        found.values(), key=lambda each: (-each.size, -each.blocks, each.stack, each.place)
    )


def moment(replay: Replay, row: int, place: int | None = None) -> Moment:
    """The blocks that are live after a row, of one place or of all."""
    live = [block for block in live_at(replay.blocks, row) if place in (None, block.place)]
    return Moment(row, sum(block.size for block in live), len(live), holders(live))


def own_peaks(replay: Replay) -> dict[int, int]:
    """The most bytes that the blocks of each stack held at once."""
    level: Counter[int] = Counter()
    for block in live_at(replay.blocks, -1):
        level[block.stack] += block.size
    most = dict(level)
    for _row, sign, block in replay.changes:
        level[block.stack] += sign * block.size
        most[block.stack] = max(most.get(block.stack, 0), level[block.stack])
    return most
