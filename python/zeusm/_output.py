"""Files that are either written to their end or left as they were."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Names of files that are open, whose place no other file can take.
OPEN = ("/dev/std", "/dev/fd/", "/proc/")


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yield the name of a draft, which takes the place of the file once it is written, and is removed if that fails.

    Devices, pipes and open files are written themselves, and files in a folder in which this user can make none. The error of a
    failure has the name `path`.
    """
    try:
        place = os.path.realpath(path)
        folder = None if is_written_itself(path) else draft_folder(place)
        if folder is None:
            yield path
            return
        draft = os.path.join(folder, os.path.basename(place))
        try:
            yield draft
            keep_attributes(place, draft)
            os.replace(draft, place)
        finally:
            with suppress(OSError):
                os.unlink(draft)
            os.rmdir(folder)
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def is_written_itself(path: str) -> bool:
    if not os.path.basename(path) or os.path.abspath(path).startswith(OPEN):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def draft_folder(place: str) -> str | None:
    """Make a folder beside the file: a draft in it can have the file's name, which decides on its compression."""
    exists = os.path.exists(place)
    if exists and not os.access(place, os.W_OK):
        return None  # The error is that of opening it.
    folder = os.path.join(os.path.dirname(place), f".zeusm-{os.urandom(6).hex()}")
    try:
        os.mkdir(folder, 0o700)
    except PermissionError:
        if exists:
            return None
        raise
    return folder


def keep_attributes(place: str, draft: str) -> None:
    """Give the draft the mode and, where that is permitted, the owner of the file that it replaces."""
    try:
        before = os.stat(place)
    except FileNotFoundError:
        return
    with suppress(PermissionError):
        os.chown(draft, before.st_uid, before.st_gid)
    os.chmod(draft, stat.S_IMODE(before.st_mode))
