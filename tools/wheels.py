"""A wheel as its files, to change them after maturin."""

import base64
import hashlib
import zipfile
from contextlib import contextmanager


@contextmanager
def rewritten(wheel):
    """The files of a wheel by their paths, written with a new record at the end of the block. Those that are added have the
    attributes of the record."""
    with zipfile.ZipFile(wheel) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        files = {path: archive.read(path) for path in infos}
    (record,) = [path for path in files if path.endswith(".dist-info/RECORD")]
    del files[record]
    yield files
    lines = [line(path, data) for path, data in files.items() if not path.endswith("/")]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in files.items():
            archive.writestr(infos.get(path) or like(infos[record], path), data)


def like(info, path):
    """The attributes of a new file."""
    found = zipfile.ZipInfo(path, info.date_time)
    found.external_attr = info.external_attr
    found.compress_type = zipfile.ZIP_DEFLATED
    return found


def line(path, data):
    """A file's line of the RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    quoted = f'"{path}"' if "," in path else path
    return f"{quoted},sha256={digest},{len(data)}"
