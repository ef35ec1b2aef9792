"""Makes the wheel for Windows from that for Linux: python windows_wheel.py LINUX_WHEEL MODULE RUNTIME FOLDER

The Python files are the same, so are the docstrings of the stub. The two libraries are cargo's for Windows.
"""

import re
import shutil
import sys
from pathlib import Path

import third_party
import wheels

ROOT = Path(__file__).resolve().parent.parent
TARGET = "x86_64-pc-windows-gnu"
TAG = "win_amd64"
OF_LINUX = re.compile(
    r"zeusm/_zeusm\..*so|zeusm/lib/.*|.*\.dist-info/(sboms/.*|licenses/THIRD-PARTY)"
)


def amend(files, module, runtime):
    """Replace what is for Linux in the files of a wheel."""
    for path in filter(OF_LINUX.fullmatch, list(files)):
        del files[path]
    files["zeusm/_zeusm.pyd"] = module.read_bytes()
    files["zeusm/lib/ze_loader.dll"] = runtime.read_bytes()
    third_party.amend(files, ROOT, TARGET)
    for name, linux, windows in (
        ("WHEEL", rb"(?m)^(Tag: .*-)linux_x86_64$", rb"\1" + TAG.encode()),
        ("METADATA", rb"POSIX :: Linux", rb"Microsoft :: Windows"),
    ):
        (path,) = [path for path in files if path.endswith(f".dist-info/{name}")]
        files[path], found = re.subn(linux, windows, files[path])
        if found != 1:
            raise ValueError(f"{path} has {linux} {found} times")


def main():
    wheel, module, runtime, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{wheel.stem.rpartition('-')[0]}-{TAG}.whl"
    shutil.copyfile(wheel, copy)
    with wheels.rewritten(copy) as files:
        amend(files, module, runtime)


if __name__ == "__main__":
    main()
