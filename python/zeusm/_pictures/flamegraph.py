"""A flame graph of the live bytes: folded stacks, which other tools read, or an SVG that needs nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from zlib import crc32

from zeusm._pictures.moments import moment
from zeusm._pictures.replay import Replay
from zeusm._pictures.text import NO_STACK, count, frame, frames, size

WIDTH = 1200
MARGIN = 10
TOP = 40
LINE = 18
#: Frames that would be narrower, in pixels, are left out.
NARROWEST = 0.2
#: The width of a wide letter; what exceeds the box is clipped.
LETTER = 7.2
STYLE = """
svg { background: #ffffff; color: #1c2126; font: 12px system-ui, "DejaVu Sans", sans-serif; }
text { fill: currentColor; } rect { stroke: #ffffff; stroke-width: .5; } g text { fill: #1c2126; pointer-events: none; }
g:hover rect { stroke: #000000; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) { svg { background: #14181c; color: #e8ebee; } rect { stroke: #14181c; }
g:hover rect { stroke: #ffffff; } }
"""


@dataclass(slots=True)
class Node:
    """A frame with all that was allocated below it."""

    size: int = 0
    blocks: int = 0
    children: dict[str, "Node"] = field(default_factory=dict)


def write(replay: Replay, path: Path, at_peak: bool = False) -> None:
    """Write folded stacks if the name ends with .txt or .folded, and a picture otherwise."""
    row = replay.peaks[None] if at_peak else replay.end
    if path.suffix in (".txt", ".folded"):
        path.write_text("".join(f"{line}\n" for line in folded(replay, row)), encoding="utf-8")
        return
    path.write_text(picture(replay, row, "the peak" if at_peak else "the end"), encoding="utf-8")


def paths(replay: Replay, row: int) -> Iterator[tuple[list[str], int, int]]:
    """The frames from the outermost on below the kind of memory, with bytes and blocks, of each stack."""
    for holder in moment(replay, row).holders:
        names = [frame(entry) for entry in reversed(frames(replay.history, holder.stack))]
        yield (
            [replay.place_name(holder.place), *(names or [NO_STACK])],
            holder.size,
            holder.blocks,
        )


def folded(replay: Replay, row: int) -> list[str]:
    """Lines of frames, separated by semicolons, and the bytes."""
    lines = []
    for names, held, _ in paths(replay, row):
        safe = (name.replace(";", ",").replace("\n", " ").replace("\r", " ") for name in names)
        lines.append(f"{';'.join(safe)} {held}")
    return lines


def tree(replay: Replay, row: int) -> tuple[Node, int]:
    """The frames below the kind of memory, and how deep they are."""
    root = Node()
    depth = 1
    for names, held, blocks in paths(replay, row):
        node = root
        for name in [None, *names]:
            if name is not None:
                node = node.children.setdefault(name, Node())
            node.size += held
            node.blocks += blocks
        depth = max(depth, len(names) + 1)
    return root, depth


def picture(replay: Replay, row: int, when: str) -> str:
    """The SVG, with the outermost frames on top."""
    root, depth = tree(replay, row)
    height = TOP + depth * LINE + MARGIN
    title = f"{size(root.size)} in {count(root.blocks, 'block')} live at {when}"
    boxes = "\n".join(draw(root)) if root.size else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{STYLE}</style>\n"
        f'<text x="{MARGIN}" y="24" font-size="16">{escape(title)}</text>\n{boxes}\n</svg>\n'
    )


def draw(root: Node) -> Iterator[str]:
    scale = (WIDTH - 2 * MARGIN) / root.size
    waiting: list[tuple[str, Node, float, int]] = [("all", root, 0.0, 0)]
    while waiting:
        name, node, start, level = waiting.pop()
        width = node.size * scale
        if width < NARROWEST:
            continue
        yield box(name, node, MARGIN + start, TOP + level * LINE, width, node.size / root.size)
        for below, child in node.children.items():
            waiting.append((below, child, start, level + 1))
            start += child.size * scale


def box(name: str, node: Node, x: float, y: int, width: float, share: float) -> str:
    """A frame; the colour has no meaning but to tell neighbours apart."""
    hue = 24 + crc32(name.encode()) % 30
    letters = int((width - 6) / LETTER)
    label = (
        name if len(name) <= letters else f"{name[: max(letters - 1, 0)]}…" if letters > 2 else ""
    )
    about = f"{name}: {size(node.size)}, {share:.1%}, {count(node.blocks, 'block')}"
    return (
        f'<g><title>{escape(clean(about))}</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{LINE}" '
        f'fill="hsl({hue} 80% 66%)"/><svg x="{x:.2f}" y="{y}" width="{width:.2f}" height="{LINE}">'
        f'<text x="4" y="13">{escape(clean(label))}</text></svg></g>'
    )


def clean(text: str) -> str:
    """Text without the control characters that XML does not allow."""
    return "".join(
        letter if letter >= " " else " " for letter in text if letter not in "\ufffe\uffff"
    )
