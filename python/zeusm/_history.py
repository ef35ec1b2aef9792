"""The history of allocations: who allocated what, when, and what is live."""

import os
import sys

# The modules socket and threading take as long to import as this package.
from _socket import gethostname
from _thread import RLock

import zeusm._zeusm as _zeusm
from zeusm._history_columns import FORMAT, VERSION, columns

TYPE_CHECKING = False  # That of typing would import it.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Self, overload
else:  # Annotations can be evaluated.
    Any = Self = object


class _Snapshot(dict[str, Any]):
    """A snapshot, of which notebooks show the figures."""

    def _repr_html_(self) -> str:
        from zeusm._notebook import html  # Only notebooks need these.
        from zeusm._pictures import file, replay, summary

        figures = summary.figures(replay.replay(file.parse(self)))
        return html("zeusm history", [*figures.items()])


class History:
    """A recording of allocations, which :func:`record_history` starts.

    As a context manager it stops recording at the end of the block. What was recorded stays in the object.

    Examples
    --------
    >>> import zeusm.memory as zm
    >>> with zm.record_history() as history:
    ...     memory = zm.MemoryUSMShared(1000)
    >>> history.recording
    False
    >>> history.snapshot()["blocks"]["size"].count(1000) >= 1
    True
    """

    def __init__(self) -> None:
        self._state: _zeusm._HistoryState | None = None

    @property
    def recording(self) -> bool:
        """Whether events are being recorded.

        Examples
        --------
        >>> import zeusm.memory as zm
        >>> with zm.record_history() as history:
        ...     history.recording
        True
        """
        return self is _current and _zeusm._history_is_recording()

    def stop(self) -> None:
        """Stop recording; of a history that is not recording, do nothing.

        Examples
        --------
        >>> import zeusm.memory as zm
        >>> history = zm.record_history()
        >>> history.stop()
        >>> history.recording
        False
        """
        with _lock:
            self._stop()

    def _stop(self) -> None:
        global _current
        if self is not _current:
            return
        # A re-entrant call may come after this one, stop nothing, and start another recording.
        self._state = _zeusm._history_stop() or self._state
        if self is _current:
            _current = None

    def snapshot(self) -> dict[str, Any]:
        """Return the events and the live blocks, now or, of a history that was stopped, at its end.

        Returns
        -------
        dict
            Numbers, strings and lists, as :meth:`save` writes them.

        Examples
        --------
        >>> import zeusm.memory as zm
        >>> with zm.record_history() as history:
        ...     zm.MemoryUSMHost(100).close()
        >>> snapshot = history.snapshot()
        >>> events = snapshot["events"]
        >>> actions = [snapshot["actions"][action] for action in events["action"]]
        >>> [action for action in actions if action in ("allocate", "free")]
        ['allocate', 'free']
        """
        return _described(self._state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the snapshot as JSON, for `python -m zeusm memory`.

        Parameters
        ----------
        path : str or path-like
            The file; compressed by gzip if the name ends in `.gz`.

        Examples
        --------
        >>> import json, pathlib, tempfile
        >>> import zeusm.memory as zm
        >>> with zm.record_history() as history:
        ...     memory = zm.MemoryUSMShared(1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "history.json")
        ...     history.save(path)
        ...     json.loads(path.read_text())["format"]
        'zeusm-memory-history'
        """
        _write(self.snapshot(), os.fsdecode(path))

    def __enter__(self) -> Self:
        if not self.recording:
            raise RuntimeError("this history is not recording: record_history() starts a new one")
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<zeusm history, {'recording' if self.recording else 'stopped'}>"

    def _repr_html_(self) -> str:
        return _described(self._state)._repr_html_()


_current: History | None = None
# Reentrant, as signal handlers and finalizers may call these functions in the thread that holds it.
_lock = RLock()


def _forget() -> None:
    """In a fork's child, which records nothing: the parent's history stays the parent's."""
    global _current, _lock
    _current = None
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


if TYPE_CHECKING:

    @overload
    def record_history(
        enabled: Literal[True] = True, *, stacks: bool = True, max_events: int | None = None
    ) -> History: ...
    @overload
    def record_history(
        enabled: bool, *, stacks: bool = True, max_events: int | None = None
    ) -> History | None: ...


def record_history(
    enabled: bool = True, *, stacks: bool = True, max_events: int | None = None
) -> History | None:
    """Start or stop recording each allocation, free, trim and failure of zeusm, and when devices executed its copies and fills.

    Each event has its time, size, kind, device, pool, thread and Python stack, of which the 64 innermost frames are
    kept. A process has one recording: a new one stops the one before. A fork's child does not record until it calls this
    function itself.

    Parameters
    ----------
    enabled : bool
        Whether to record from now on, or to stop.
    stacks : bool
        Whether to record the Python stacks.
    max_events : int, optional
        The largest number of events to keep, and of copies and fills. The oldest are dropped and counted; live blocks keep
        their stacks.

    Returns
    -------
    History or None
        The new recording, a context manager; or the one that was stopped, None if there was none.

    Examples
    --------
    >>> import zeusm.memory as zm
    >>> with zm.record_history(max_events=100_000) as history:
    ...     memory = zm.MemoryUSMDevice(4096)
    >>> history = zm.record_history()
    >>> more = zm.MemoryUSMDevice(4096)
    >>> zm.record_history(False) is history
    True
    """
    global _current
    history = History()
    # Wrong arguments stop no recording.
    options = _zeusm._history_options(stacks, max_events)
    with _lock:
        before = _current
        while _current is not None:  # A re-entrant call may start another recording meanwhile.
            _current._stop()
        if not enabled:
            return before
        # Before the start, so that a re-entrant call stops what has started.
        _current = history
        try:
            _zeusm._history_start(*options)
        except BaseException:
            history._stop()
            raise
        return history


def snapshot() -> dict[str, Any]:
    """Return the live blocks and slabs of zeusm, and the events of the history that is being recorded.

    Returns
    -------
    dict
        Numbers, strings and lists; docs/history.md describes them. Without a recording there are no events, and the
        blocks have no stacks.

    Examples
    --------
    >>> import zeusm.memory as zm
    >>> memory = zm.MemoryUSMShared(12345)
    >>> 12345 in zm.snapshot()["blocks"]["size"]
    True
    """
    return _described(None)


def _described(state: _zeusm._HistoryState | None) -> _Snapshot:
    """Return the state, by default that of now, with the description of this process."""
    described = {
        "format": FORMAT,
        "version": VERSION,
        "zeusm": _zeusm.__version__,
        "process": {
            "pid": os.getpid(),
            # There may be other objects, and names that are not in the system's encoding, which JSON cannot have. At the end of the
            # interpreter there are none.
            "argv": [str(each).encode(errors="replace").decode() for each in sys.argv or ()],
            "python": sys.version.split()[0],
            "host": gethostname(),
        },
        **columns((state or _zeusm._history_state()).rows()),
    }
    return _Snapshot(described)


def _write(described: dict[str, Any], path: str) -> None:
    import gzip  # The import of zeusm takes a third less without it and json.
    import json

    text = json.dumps(described)
    opener: Callable[..., Any] = gzip.open if path.endswith(".gz") else open
    opened = opener(path, "wt", encoding="utf-8")
    try:
        with opened as file:
            file.write(text)
    except OSError:
        # A part of a history is none: the file system is full.
        if os.path.isfile(path):
            os.unlink(path)
        raise
