"""A history in text: its figures, who held the memory at the peak, and what failed."""

from collections.abc import Iterator

from zeusm._pictures.flamegraph import Node, tree
from zeusm._pictures.moments import moment
from zeusm._pictures.replay import Replay, live_at
from zeusm._pictures.text import count, duration, size

#: Frames that held a smaller share of the peak are left out, and so are failures before the last ones.
SHARE = 0.01
FAILURES = 5


def figures(replay: Replay) -> dict[str, str]:
    """The figures of the whole recording."""
    history = replay.history
    events = history.events
    most, end = moment(replay, replay.peaks[None]), moment(replay, replay.end)
    held = sum(region.size for region in live_at(replay.regions, replay.end))
    hits, misses = events.hit.count(1), events.hit.count(0)
    served = f"{hits / (hits + misses):.1%}" if hits + misses else "none"
    span = duration(replay.time[-1] - replay.time[0]) if replay.rows else "0 ns"
    return {
        "Peak in use": f"{size(most.size)}",
        "At the peak": count(most.blocks, "block"),
        "In use at the end": f"{size(end.size)}",
        "Held from the driver at the end": f"{size(held)}",
        "Events": f"{replay.rows:,}",
        "First to last event": span,
        "Served by the pool": served,
        "Failed allocations": f"{len(history.failures):,}",
    }


def summary(replay: Replay) -> Iterator[str]:
    """The lines of the text."""
    for name, value in figures(replay).items():
        yield f"{name + ':':33}{value}"
    root, _ = tree(replay, replay.peaks[None])
    if root.size:
        yield "\nAt the peak, from the kind of memory and the outermost frame to those that allocated:"
        yield from branches(root)
        if smaller := sum(child.size < SHARE * root.size for child in root.children.values()):
            yield f"Smaller ones, not shown: {smaller}"
    for failure in replay.history.failures[-FAILURES:]:
        yield f"\nAn allocation failed: {failure.message}"


def branches(root: Node) -> Iterator[str]:
    """The frames below the root, each before those that it called; those with the most bytes first."""
    waiting = [(-1, "", root)]
    while waiting:
        level, name, node = waiting.pop()
        if level >= 0:
            blocks = count(node.blocks, "block")
            share = node.size / root.size
            yield f"{size(node.size):>11} {share:6.1%} {blocks:>14}  {'  ' * level}{name}"
        below = sorted(node.children.items(), key=lambda item: (item[1].size, item[0]))
        waiting += [
            (level + 1, name, child) for name, child in below if child.size >= SHARE * root.size
        ]
