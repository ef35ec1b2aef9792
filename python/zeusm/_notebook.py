"""Objects as tables of HTML, which notebooks show in place of `repr`."""

from collections.abc import Sequence
from html import escape

from zeusm._pictures.tables import table


def html(caption: str, cells: Sequence[tuple[str, str]], below: str = "") -> str:
    """A table of one row of text with the names of its columns, and text below it."""
    columns = [name for name, _ in cells]
    row = [escape(text).replace("\n", "<br>") for _, text in cells]
    text = f'<pre style="font-family: monospace">{escape(below)}</pre>' if below else ""
    return table(caption, columns, [row]) + text
