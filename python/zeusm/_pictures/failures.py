"""What would have made room for an allocation that failed."""

import re
from dataclasses import dataclass

from zeusm._pictures.file import Failure
from zeusm._pictures.moments import Holder, holders
from zeusm._pictures.replay import Intervals, Replay


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
    events, blocks, regions = replay.history.events, replay.blocks, replay.regions
    place = replay.places.index((events.kind[row], events.device[row]))
    asked = events.size[row]
    limit, need = excess(failure) or (None, asked - max(failure.free, 0))
    pool = events.pool[row] if limit is not None else -1

    def counts(intervals: Intervals, number: int) -> bool:
        return intervals.place[number] == place and pool in (-1, intervals.pool[number])

    live = [number for number in blocks.live_at(row) if counts(blocks, number)]
    held = [number for number in regions.live_at(row) if counts(regions, number)]
    found = holders(replay, live)
    stacks: list[Holder] = []
    room = 0
    for holder in found:
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
        pinned=pinned(replay, held, live, need),
    )


def excess(failure: Failure) -> tuple[int, int] | None:
    """The limit of the pool, and the bytes above it, where the limit refused: the message says so, and no field does."""
    found = re.search(
        r"(\d{1,19}) bytes more than the (\d{1,19}) held would exceed .* limit of (\d{1,19})",
        failure.message,
    )
    if found is None:
        return None
    size, held, limit = map(int, found.groups())
    return limit, size + held - limit


def pinned(replay: Replay, held: list[int], live: list[int], need: int) -> Pinned | None:
    """The slabs with the fewest bytes in use for their size that have `need` bytes together."""
    regions, blocks = replay.regions, replay.blocks
    inside: dict[int, list[int]] = {number: [] for number in held}
    for number in live:
        region = replay.region_of[number]
        if region in inside:
            inside[region].append(number)

    def used(region: int) -> int:
        return sum(blocks.size[number] for number in inside[region])

    partly = [region for region in inside if used(region) * 2 < regions.size[region]]
    partly.sort(key=lambda region: (used(region) / regions.size[region], -regions.size[region]))
    chosen: list[int] = []
    for region in partly:
        if sum(regions.size[each] for each in chosen) >= need:
            break
        chosen.append(region)
    if not chosen:
        return None
    within = [number for region in chosen for number in inside[region]]
    return Pinned(
        slabs=len(chosen),
        size=sum(regions.size[region] for region in chosen),
        blocks=len(within),
        used=sum(blocks.size[number] for number in within),
        holders=holders(replay, within),
    )
