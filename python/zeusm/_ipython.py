"""`%load_ext zeusm`: the magic `%%zeusm_memory`, which shows the memory of a cell below it."""

from collections.abc import Callable
from html import escape
from typing import Any

from zeusm._history import record_history
from zeusm._pictures.file import parse
from zeusm._pictures.page import page
from zeusm._pictures.replay import replay
from zeusm._pictures.summary import summary

NAME = "zeusm_memory"


def load(shell: Any) -> None:
    """Add the magic to a shell of IPython."""

    def record(_line: str) -> None:
        """Record the allocations of the rest of the cell, and show memory over time and the peak below it."""
        history = record_history()

        def show(_result: object) -> None:
            shell.events.unregister("post_run_cell", show)
            history.stop()
            shell.display_pub.publish(shown(history.snapshot(), shell.compile.format_code_name))

        shell.events.register("post_run_cell", show)

    shell.register_magic_function(record, magic_name=NAME)
    shell.input_transformers_cleanup.append(as_line)


def as_line(lines: list[str]) -> list[str]:
    """The magic of a cell as one of its first line: the shell runs the cell as any other, with its result and its exception."""
    if lines and lines[0].split()[:1] == [f"%%{NAME}"]:
        lines[0] = lines[0].lstrip()[1:]
    return lines


def shown(
    snapshot: dict[str, Any], cell_of: Callable[[str], tuple[str, str] | None]
) -> dict[str, str]:
    """The report of a cell, by the type of its text. `cell_of` names the cell that a file of code is. The stacks end there,
    without the frames of IPython."""
    files = snapshot["files"]
    cells = {number: cell[1] for number, file in enumerate(files) if (cell := cell_of(file))}
    is_inside = [file in cells for file in snapshot["frames"]["file"]]
    for stack in snapshot["stacks"]:
        inside = [at for at, frame in enumerate(stack) if is_inside[frame]]
        del stack[inside[-1] + 1 if inside else len(stack) :]
    snapshot["files"] = [cells.get(number, file) for number, file in enumerate(files)]
    snapshot["process"]["argv"] = ["the cell"]
    found = replay(parse(snapshot))
    style = "width: 100%; height: 820px; border: 1px solid #8886"
    frame = (
        f'<iframe srcdoc="{escape(page(found))}" sandbox="allow-scripts" style="{style}"></iframe>'
    )
    return {"text/html": frame, "text/plain": "\n".join(summary(found))}
