"""What would have made room for an allocation that failed."""

import re
from dataclasses import dataclass

from zeusm._pictures.file import Failure
from zeusm._pictures.moments import Holder, holders
from zeusm._pictures.replay import Interval, Replay, live_at


@dataclass(slots=True)
class Pinned:
    """Slabs that few bytes keep from the driver: with their blocks freed, all of `size` can be returned."""

    slabs: int
    size: int
    blocks: int
    used: int
    holders: list[Holder]


@dataclass(slots=True)
class Remedy:
    """The ways to `need` bytes at the time of a failure, of the memory of one place, or of one pool if its limit refused.

    `stacks` are the fewest whose blocks make room (`is_enough`), or all stacks if that is not enough. `pinned` is `None` if no slabs have room that is not used.
    """

    failure: Failure
    asked: int
    place: int
    need: int
    limit: int | None
    stacks: list[Holder]
    is_enough: bool
    pinned: Pinned | None


def remedy(replay: Replay, failure: Failure) -> Remedy | None:
    """The ways to make room; `None` if the failure's event was dropped."""
    row = failure.event
    if row < 0:
        return None
    events = replay.history.events
    place = replay.places.index((events.kind[row], events.device[row]))
    asked = events.size[row]
    limit, need = excess(failure) or (None, asked - max(failure.free, 0))
    pool = events.pool[row] if limit is not None else -1

    def counted(intervals: list[Interval]) -> list[Interval]:
        live = live_at(intervals, row)
        return [each for each in live if each.place == place and pool in (-1, each.pool)]

    live = counted(replay.blocks)
    stacks: list[Holder] = []
    room = 0
    for holder in holders(live):
        if room >= need:
            break
        stacks.append(holder)
        room += holder.size
    return Remedy(
        failure=failure,
        asked=asked,
        place=place,
        need=need,
        limit=limit,
        stacks=stacks,
        is_enough=room >= need,
        pinned=pinned(counted(replay.regions), live, need),
    )


def excess(failure: Failure) -> tuple[int, int] | None:
    """The limit of the pool, and the bytes above it, where the limit refused: the message says so, and no field does."""
    found = re.search(
        r"(\d{1,19}) bytes\)? more than the (?:[\d.]+ \wiB \()?(\d{1,19}) bytes\)? held would exceed .* limit of "
        r"(?:[\d.]+ \wiB \()?(\d{1,19}) bytes",
        failure.message,
    )
    if found is None:
        return None
    size, held, limit = map(int, found.groups())
    return limit, size + held - limit


def pinned(held: list[Interval], live: list[Interval], need: int) -> Pinned | None:
    """The slabs with the fewest bytes in use for their size that have `need` bytes together."""
    inside: dict[Interval, list[Interval]] = {region: [] for region in held}
    for block in live:
        if block.region in inside:
            inside[block.region].append(block)
    used = {region: sum(block.size for block in blocks) for region, blocks in inside.items()}
    partly = [region for region in held if used[region] * 2 < region.size]
    partly.sort(key=lambda region: (used[region] / region.size, -region.size))
    chosen: list[Interval] = []
    for region in partly:
        if sum(each.size for each in chosen) >= need:
            break
        chosen.append(region)
    if not chosen:
        return None
    within = [block for region in chosen for block in inside[region]]
    return Pinned(
        slabs=len(chosen),
        size=sum(region.size for region in chosen),
        blocks=len(within),
        used=sum(block.size for block in within),
        holders=holders(within),
    )
