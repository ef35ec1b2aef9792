"""Errors of the dynamic linker that `LD_LIBRARY_PATH` causes or mends."""

import re
import shlex
from pathlib import Path

from zeusm._doctor.machine import Machine

PATHS = "LD_LIBRARY_PATH"
#: A library that was not found by its name.
MISSING = re.compile(r"(?:^|[\s(])([^\s/:(]+): cannot open shared object file")


def remedy(machine: Machine, error: str) -> str | None:
    """Return the command, if the environment has the missing library, or programs find another environment's libraries first."""
    own = machine.prefix / "lib"
    value = machine.environment.get(PATHS, "")
    folders = [Path(name) for name in value.split(":") if name]
    export = f"export {PATHS}={shlex.quote(str(own))}"
    if any((own / name).exists() for name in MISSING.findall(error)) and own not in folders:
        return f"{export}:${PATHS}" if folders else export
    others = [folder for folder in folders if folder != own and has_same_libraries(folder, own)]
    if "undefined symbol" in error and others:
        return export if own in folders else f"unset {PATHS}"
    return None


def has_same_libraries(folder: Path, own: Path) -> bool:
    return any((own / library.name).exists() for library in folder.glob("lib*.so*"))
