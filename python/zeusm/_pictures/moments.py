"""Who held memory at a moment: the peaks, the end, and the stacks by bytes."""

from collections.abc import Callable
from dataclasses import dataclass

from zeusm._pictures.replay import Replay


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


def holders(replay: Replay, numbers: list[int]) -> list[Holder]:
    """Sum up blocks by their stacks and places, most bytes first."""
    found: dict[tuple[int, int], Holder] = {}
    blocks = replay.blocks
    for number in numbers:
        key = blocks.stack[number], blocks.place[number]
        holder = found.get(key)
        if holder is None:
            holder = found[key] = Holder(*key, 0, 0)
        holder.size += blocks.size[number]
        holder.blocks += 1
    return sorted(
        found.values(), key=lambda each: (-each.size, -each.blocks, each.stack, each.place)
    )


def moment(replay: Replay, row: int, place: int | None = None) -> Moment:
    """The blocks that are live after a row, of one place or of all."""
    blocks = replay.blocks
    numbers = [
        number for number in blocks.live_at(row) if place is None or blocks.place[number] == place
    ]
    held = sum(blocks.size[number] for number in numbers)
    return Moment(row, held, len(numbers), holders(replay, numbers))


def own_peaks(replay: Replay, group: Callable[[int], int]) -> dict[int, int]:
    """The most bytes that each group of blocks held at once."""
    blocks = replay.blocks
    level: dict[int, int] = {}
    for number in blocks.live_at(-1):
        level[group(number)] = level.get(group(number), 0) + blocks.size[number]
    most = dict(level)
    for _row, number, sign in replay.changes:
        key = group(number)
        now = level[key] = level.get(key, 0) + sign * blocks.size[number]
        if now > most.get(key, 0):
            most[key] = now
    return most
