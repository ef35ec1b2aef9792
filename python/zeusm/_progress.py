"""Progress bars on standard error."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

_T = TypeVar("_T")

#: Work that takes less than this many seconds has no bar.
_QUIET = 1.0
#: Seconds between two changes of a bar.
_STEP = 0.1
_WIDTH = 30


def progress(items: Iterable[_T], text: str, total: int | None = None) -> Iterator[_T]:
    """Yield the items, with a bar on standard error once that takes more than a second.

    There is no bar if standard error is not a terminal. The line is cleared at the end.

    Parameters
    ----------
    items : iterable
        What is worked on.
    text : str
        What is done, before the bar.
    total : int, optional
        The number of items; by default the length of `items` if it has one, else the bar only counts.

    Examples
    --------
    >>> from zeusm._progress import progress
    >>> sum(progress([1, 2, 3], "adding"))
    6
    """
    if not sys.stderr.isatty():
        yield from items
        return
    if total is None and isinstance(items, Sized):
        total = len(items)
    due = time.monotonic() + _QUIET
    shown = False
    try:
        for done, item in enumerate(items):
            if time.monotonic() >= due:
                print(f"\r{_line(text, done, total)}", end="", file=sys.stderr, flush=True)
                due = time.monotonic() + _STEP
                shown = True
            yield item
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _line(text: str, done: int, total: int | None) -> str:
    if not total:
        return f"{text}: {done}"
    filled = _WIDTH * min(done, total) // total
    return (
        f"{text} [{'#' * filled}{' ' * (_WIDTH - filled)}] {100 * min(done, total) // total:3d} %"
    )
