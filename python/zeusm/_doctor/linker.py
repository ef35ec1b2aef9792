"""Errors of the dynamic linker that `LD_LIBRARY_PATH` causes or mends."""

import os
import re
import shlex
from glob import glob
from pathlib import Path

from zeusm._doctor.machine import Machine

PATHS = "LD_LIBRARY_PATH"
#: A library that was not found by its name.
MISSING = re.compile(r"(?:^|[\s(])([^\s/:(]+): cannot open shared object file")


def remedy(machine: Machine, error: str) -> str | None:
    """Return the command, if the environment has the missing library, or programs find another environment's libraries first."""
    own = machine.libraries
    value = machine.environment.get(PATHS, "")
    folders = [Path(name) for name in value.split(":") if name]
    export = f"export {PATHS}={shlex.quote(str(own))}"
    if any(is_there(own, name) for name in MISSING.findall(error)) and own not in folders:
        return f"{export}:${PATHS}" if folders else export
    others = [folder for folder in folders if folder != own and has_same_libraries(folder, own)]
    if "undefined symbol" in error and others:
        return export if own in folders else f"unset {PATHS}"
    return None


def has_same_libraries(folder: Path, own: Path) -> bool:
    return any(is_there(own, name) for name in glob("lib*.so*", root_dir=folder))


def is_there(folder: Path, name: str) -> bool:
    """Whether the file exists. Names from errors and variables may be longer than any file's, which is an error of `Path`."""
    return os.path.exists(folder / name)
