"""Files that are either written to their end or left as they were."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Names of files that are open, whose place no other file can take.
OPEN = ("/dev/std", "/dev/fd/", "/proc/")
#: The errors of a move to the place of a file that can be written: a mount point, or another user's in a sticky folder.
IMMOVABLE = (errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES)


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yield the name of a draft, which takes the place of the file once it is written, and is removed if that fails.

    Devices, pipes and open files are written themselves, and files in a folder in which this user can make none. The error of a
    failure has the name `path`. A file that must stay for its owner, or as a mount point, gets the bytes of the draft.
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
            take_place(place, draft)
        finally:
            with suppress(OSError):
                os.unlink(draft)
            os.rmdir(folder)
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, path) from error


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


def take_place(place: str, draft: str) -> None:
    """Move the draft to the place of the file, or copy it into a file that must stay."""
    if keeps_attributes(place, draft):
        try:
            os.replace(draft, place)
            return
        except OSError as error:
            if error.errno not in IMMOVABLE or not os.access(place, os.W_OK):
                raise
    # Without O_CREAT, with which Linux does not open another user's file in a sticky folder.
    into = os.open(place, os.O_WRONLY | os.O_TRUNC)
    with open(draft, "rb") as source, open(into, "wb") as file:
        shutil.copyfileobj(source, file)


def keeps_attributes(place: str, draft: str) -> bool:
    """Give the draft the group, the owner and the mode of the file that it replaces; return whether this user may."""
    try:
        before, now = os.stat(place), os.stat(draft)
    except FileNotFoundError:
        return True
    try:
        # The owner of a file may give it to another of the own groups, but not to another user.
        if now.st_gid != before.st_gid:
            os.chown(draft, -1, before.st_gid)
        if now.st_uid != before.st_uid:
            os.chown(draft, before.st_uid, -1)
        os.chmod(draft, stat.S_IMODE(before.st_mode))
    except OSError:
        return False
    return True
