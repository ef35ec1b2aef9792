"""The parts of the page that are text: figures, tables and failures."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from zeusm._pictures import summary
from zeusm._pictures.failures import Remedy, remedy
from zeusm._pictures.file import History
from zeusm._pictures.moments import Holder, Moment, moment
from zeusm._pictures.replay import Replay
from zeusm._pictures.text import NO_STACK, count, duration, frames, head, size

#: Rows of a table, failures that are explained, and their stacks, at most; the page says how many more there are.
ROWS = 50
FAILURES = 20
NAMED = 5
SLABS = 200


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns whose name ends with `#` have numbers. The cells are HTML."""

    def cell(tag: str, name: str, text: str) -> str:
        number = ' class="number"' if name.endswith("#") else ""
        bar = ' class="bar"' if name.endswith("|") else ""
        return f"<{tag}{number}{bar}>{text}</{tag}>"

    heads = "".join(cell("th", name, escape(name.rstrip("#|"))) for name in columns)
    body = "".join(
        f"<tr>{''.join(cell('td', name, text) for name, text in zip(columns, row, strict=True))}</tr>\n"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def stack(history: History, number: int) -> str:
    """A stack: its innermost frame, which opens the others."""
    entries = frames(history, number)
    if not entries:
        return escape(NO_STACK)
    lines = escape("\n".join(f"{function} ({file}:{line})" for file, line, function in entries))
    return (
        f"<details><summary>{escape(head(history, number))}</summary><pre>{lines}</pre></details>"
    )


def figures(replay: Replay) -> str:
    """The figures of the whole recording."""
    return "\n".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in summary.figures(replay).items()
    )


def notes(replay: Replay) -> str:
    """What a reader must know before believing the pictures."""
    found = []
    dropped = replay.history.dropped
    if dropped:
        found.append(
            f"{count(dropped, 'event')} were dropped, the oldest first: blocks made in that time have no stack, and the peak may "
            "have been before the first event. max_events of record_history() sets how many are kept."
        )
    if replay.problems:
        listed = "; ".join(
            f"{name}: {number:,}" for name, number in sorted(replay.problems.items())
        )
        found.append(f"The events do not fit together, so the file may be damaged. {listed}.")
    if not replay.rows:
        found.append("There are no events.")
    return "\n".join(f'<p class="note">{escape(each)}</p>' for each in found)


def holding(replay: Replay, caption: str, state: Moment) -> str:
    """A table of the stacks that hold memory at a moment."""
    most = max((holder.size for holder in state.holders), default=0)

    def row(holder: Holder) -> list[str]:
        share = holder.size / state.size if state.size else 0
        width = holder.size / most * 100 if most else 0
        return [
            size(holder.size),
            f'{share:.1%}<span class="share"><i style="width:{width:.1f}%"></i></span>',
            f"{holder.blocks:,}",
            escape(replay.place_name(holder.place)),
            stack(replay.history, holder.stack),
        ]

    if not state.holders:
        return "<p>No block was live.</p>"
    columns = ("Bytes#", "Share#", "Blocks#", "Kind", "Stack")
    more = len(state.holders) - ROWS
    rest = f"; the first {ROWS} of {len(state.holders)}" if more > 0 else ""
    return table(caption + rest, columns, map(row, state.holders[:ROWS]))


def peaks(replay: Replay) -> str:
    """Who held the memory at the peak, and at the peak of each kind if there are several."""

    def caption(state: Moment) -> str:
        when = f"at {duration(replay.time[state.row])}" if state.row >= 0 else "at the beginning"
        return f"{size(state.size)} in {count(state.blocks, 'block')} {when}, by the stack that allocated"

    overall = moment(replay, replay.peaks[None])
    parts = [holding(replay, caption(overall), overall)]
    if len(replay.places) > 1:
        for place in range(len(replay.places)):
            state = moment(replay, replay.peaks[place], place)
            if state.holders:
                name = escape(replay.place_name(place))
                inner = holding(replay, caption(state), state)
                parts.append(
                    f"<details><summary>The peak of {name} memory: {size(state.size)}</summary>{inner}</details>"
                )
    return "\n".join(parts)


def at_the_end(replay: Replay) -> str:
    state = moment(replay, replay.end)
    caption = f"{size(state.size)} in {count(state.blocks, 'block')}, by the stack that allocated"
    return holding(replay, caption, state)


def churn(replay: Replay) -> str:
    """The stacks that allocated most often."""
    found: dict[int, list[int]] = {}
    for block in replay.blocks:
        if block.first >= 0:
            entry = found.setdefault(block.stack, [0, 0, 0])
            entry[0] += 1
            entry[1] += block.size
            entry[2] += block.hit == 0
    if not found:
        return "<p>Nothing was allocated.</p>"
    ordered = sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
    rows = (
        [f"{times:,}", size(total), f"{missed:,}", stack(replay.history, number)]
        for number, (times, total, missed) in ordered[:ROWS]
    )
    columns = ("Allocations#", "Bytes in all#", "Driver asked#", "Stack")
    rest = f", the first {ROWS} of {len(ordered)}" if len(ordered) > ROWS else ""
    return table(f"By the stack that allocated{rest}", columns, rows)


def slabs(replay: Replay) -> str:
    """The slabs of the pools at the end, those with the largest holes first."""
    table_of = replay.history.slabs
    if not table_of.address:
        return "<p>The pools held nothing at the end.</p>"
    order = sorted(
        range(len(table_of.address)),
        key=lambda row: (table_of.used[row] - table_of.size[row], table_of.address[row]),
    )
    total, used = sum(table_of.size), sum(table_of.used)

    def row(number: int) -> list[str]:
        slot = table_of.block[number]
        place = replay.places.index((table_of.kind[number], table_of.device[number]))
        hole = max(table_of.size[number] - table_of.used[number], 0)
        label = escape(
            f"The blocks of the slab at {table_of.address[number]:#x}; the arrow keys inspect"
        )
        return [
            f"{table_of.address[number]:#x}",
            escape(replay.place_name(place)),
            f"blocks of {size(slot)}"
            if slot
            else "one block"
            if table_of.used[number]
            else "cached",
            size(table_of.size[number]),
            size(hole),
            f'<canvas class="slab" data-slab="{number}" tabindex="0" role="img" aria-label="{label}"></canvas>',
        ]

    columns = ("Address", "Kind", "Content", "Size#", "Free#", "Blocks|")
    rest = f"; the first {SLABS} of {len(order)}" if len(order) > SLABS else ""
    caption = (
        f"{count(len(order), 'slab')} of {size(total)} at the end, {size(used)} in use, {size(max(total - used, 0))} free; a pale end "
        f"of a block is what rounding up its size costs{rest}"
    )
    return table(caption, columns, map(row, order[:SLABS]))


def failures(replay: Replay) -> str:
    found = replay.history.failures
    if not found:
        return "<p>None.</p>"
    parts = list(explained(replay))
    if len(found) > FAILURES:
        parts.append(f"<p>The last {FAILURES} of {len(found):,} failures are explained.</p>")
    return "\n".join(parts)


def explained(replay: Replay) -> Iterator[str]:
    """Each failure with the ways to room for it."""
    for each in replay.history.failures[-FAILURES:]:
        way = remedy(replay, each)
        state = f"{size(each.in_use)} in use, {size(each.cached)} cached by the pools"
        if each.free >= 0:
            state += f", {size(each.free)} free on the device"
        lines = [f"<p>{escape(each.message)}</p>", f'<p class="muted">{escape(state)}</p>']
        title = "An allocation failed; its event was dropped"
        if way is not None:
            row = each.event
            where = replay.place_name(way.place)
            title = f"{size(way.asked)} of {where} memory at {duration(replay.time[row])}"
            lines.append(f"<div>By {stack(replay.history, replay.history.events.stack[row])}</div>")
            lines.append(f"<p>What would have made room:</p><ul>{''.join(ways(replay, way))}</ul>")
        yield f'<div class="failure"><h3>{escape(title)}</h3>{"".join(lines)}</div>'


def ways(replay: Replay, way: Remedy) -> Iterator[str]:
    """What would have freed enough, one item each."""
    if way.need <= 0:
        yield (
            f"<li>Nothing that was in use: the device had {size(max(way.failure.free, 0))} free. The lack of one free range of that "
            "size, or a limit, refused it.</li>"
        )
        return
    whose = "of that kind" if way.limit is None else "that count"
    if way.limit is not None:
        yield f"<li>A higher limit of the pool: {size(way.limit + way.need)} (set_limit()).</li>"
    elif way.failure.cached:
        yield (
            f"<li>Trimming the pools: up to {size(way.failure.cached)} of the {size(way.need)} "
            "(free_all_blocks()).</li>"
        )
    if way.stacks:
        total = sum(holder.size for holder in way.stacks)
        if way.is_enough:
            what = f"Freeing the blocks of {count(len(way.stacks), 'stack')}, {size(total)}:"
        else:
            what = f"Not by freeing alone: all blocks {whose} were {size(total)}, and {size(way.need)} were needed:"
        yield f"<li>{what}{listed(replay, way.stacks)}</li>"
    if way.pinned:
        pinned = way.pinned
        yield (
            f"<li>Freeing {count(pinned.blocks, 'block')} of {size(pinned.used)} that kept {count(pinned.slabs, 'slab')} of "
            f"{size(pinned.size)} from the driver:{listed(replay, pinned.holders)}</li>"
        )


def listed(replay: Replay, holders: Sequence[Holder]) -> str:
    """The first stacks of those that hold memory, as a list."""
    lines = [
        f"{size(holder.size)} in {count(holder.blocks, 'block')}: {stack(replay.history, holder.stack)}"
        for holder in holders[:NAMED]
    ]
    if len(holders) > NAMED:
        rest = holders[NAMED:]
        lines.append(
            f"{size(sum(holder.size for holder in rest))} of {count(len(rest), 'further stack')}"
        )
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"
