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


def progress(items: Iterable[_T], text: str) -> Iterator[_T]:
    """Yield the items, with a bar on standard error once that takes more than a second.

    There is no bar if standard error is not a terminal. The line is cleared at the end.

    Parameters
    ----------
    items : iterable
        What is worked on. Without a length, the bar only counts.
    text : str
        What is done, before the bar.

    Examples
    --------
    >>> from zeusm._progress import progress
    >>> sum(progress([1, 2, 3], "adding"))
    6
    """
    if not sys.stderr.isatty():
        yield from items
        return
    total = len(items) if isinstance(items, Sized) else None
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
