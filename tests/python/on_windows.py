"""The tests that do not run on Windows or in wine, by the list windows.toml, with their reasons."""

import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

IS_WINDOWS = sys.platform == "win32"


def _is_wine():
    import ctypes

    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


def is_crash(status):
    """Whether a program was ended by a signal; on Windows by `abort` or by an exception, whose code is above these."""
    return status == 3 or status >= 0xC0000000 if IS_WINDOWS else status < 0


def _entries():
    """The list's entries that hold for this system."""
    if not IS_WINDOWS:
        return []
    entries = tomllib.loads(Path(__file__).with_name("windows.toml").read_text("utf-8"))["not_run"]
    return [entry for entry in entries if entry["needs"] != "more than wine" or _is_wine()]


# Whole files are not imported, since they may use modules that Windows lacks.
REASONS = {
    pattern: f"needs {entry['needs']}: {entry['reason']}"
    for entry in _entries()
    for pattern in entry["tests"]
}
FILES = [pattern for pattern in REASONS if "::" not in pattern]


def skip(items):
    """Mark the listed tests. A pattern that none of the tests of its file has is an error."""
    names = {item.nodeid.rpartition("/")[2]: item for item in items}
    files = {name.partition("::")[0] for name in names}
    for pattern, reason in REASONS.items():
        found = [item for name, item in names.items() if fnmatchcase(name, pattern)]
        if not found and pattern.partition("::")[0] in files - set(FILES):
            raise pytest.UsageError(f"windows.toml: no test is {pattern}")
        for item in found:
            item.add_marker(pytest.mark.skip(reason=reason))
