"""Names and figures as a reader wants them."""

from zeusm._pictures.file import History

NO_STACK = "no stack recorded"


def size(value: float) -> str:
    """A number of bytes with its unit.

    >>> size(1), size(1536), size(3 << 30)
    ('1 B', '1.5 KiB', '3 GiB')
    """
    return scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def duration(nanoseconds: float) -> str:
    """A time with its unit.

    >>> duration(0), duration(1500), duration(90 * 10**9)
    ('0 ns', '1.5 µs', '90 s')
    """
    return scaled(nanoseconds, 1000, ("ns", "µs", "ms", "s"))


def scaled(value: float, factor: int, units: tuple[str, ...]) -> str:
    for _ in units[:-1]:
        if abs(value) < factor:
            break
        value /= factor
        units = units[1:]
    return f"{value:.4g} {units[0]}"


def count(number: int, noun: str) -> str:
    """A number and its noun.

    >>> count(1, "block"), count(12000, "block")
    ('1 block', '12,000 blocks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def frames(history: History, stack: int) -> list[tuple[str, int, str]]:
    """The frames of a stack, file, line and function, the innermost first."""
    if stack < 0:
        return []
    table = history.frames
    return [
        (
            history.files[table.file[frame]],
            table.line[frame],
            history.functions[table.function[frame]],
        )
        for frame in history.stacks[stack]
    ]


def frame(entry: tuple[str, int, str]) -> str:
    """A frame in one line, with the last part of its file's path."""
    file, line, function = entry
    return f"{function} ({file.rsplit('/', 1)[-1]}:{line})"


def head(history: History, stack: int) -> str:
    """The innermost frame of a stack."""
    entries = frames(history, stack)
    return frame(entries[0]) if entries else NO_STACK
