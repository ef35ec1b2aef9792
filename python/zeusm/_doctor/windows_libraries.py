"""The Level Zero loader, SYCL's library and its adapters: which are there, and which others programs may find."""

import re
from collections.abc import Iterator
from pathlib import Path

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.opened import opened
from zeusm._doctor.windows_machine import WindowsMachine
from zeusm._doctor.windows_system import UPDATE, gpus

LOADER = "ze_loader.dll"
SYCL = re.compile(r"sycl\d+\.dll", re.IGNORECASE)
#: What SYCL's library needs beside it, with the package: what opens adapters, the adapter of Level Zero, and what that needs.
NEEDED = {
    "ur_win_proxy_loader.dll": "intel-cmplr-lib-ur",
    "ur_adapter_level_zero.dll": "intel-cmplr-lib-ur",
    "umf.dll": "umf",
    "libhwloc-15.dll": "tcmlib",
}


def find_loader(machine: WindowsMachine) -> Iterator[Finding]:
    """Open the loader that Intel's driver installs, and look for others."""
    step, loader = "Level Zero loader", machine.path(f"System32/{LOADER}")
    found, error = opened(machine, str(loader)) if loader.exists() else ("", "")
    if found:
        yield Finding(step, State.OK, found)
    elif error:
        yield Finding(step, State.WRONG, f"{loader}: {error}", UPDATE)
    elif gpus(machine):
        yield Finding(step, State.WRONG, f"{loader} is missing, which Intel's driver has", UPDATE)
    else:
        yield Finding(step, State.ABSENT, f"{loader} is not installed; no GPU needs it")
    for folder in machine.folders():
        other = folder / LOADER
        if folder != loader.parent and is_there(other):
            text = f"{other} is another one, which programs may find in PATH"
            yield Finding(step, State.NOTE, text)


def find_sycl(machine: WindowsMachine) -> Iterator[Finding]:
    """List SYCL's libraries, and whether each has what it needs."""
    step, found = "SYCL's library", list(dict.fromkeys(sycls(machine)))
    if not found:
        yield Finding(step, State.ABSENT, "no sycl9.dll or earlier; dpctl brings it")
    for library in found:
        missing = [name for name in NEEDED if not is_there(library.with_name(name))]
        if missing:
            text = f"{library} lacks {', '.join(missing)} in its folder"
            packages = dict.fromkeys(NEEDED[name] for name in missing)
            remedy = f"pip install --force-reinstall {' '.join(packages)}"
            yield Finding(step, State.WRONG, text, remedy)
        elif not has_characters(machine.code_page, str(library)):
            lacks = f"characters that the code page {machine.code_page} lacks"
            text = f"{library}: SYCL may find no device, as the path has {lacks}"
            yield Finding(step, State.NOTE, text)
        else:
            adapters = sorted(file.stem for file in library.parent.glob("ur_adapter_*.dll"))
            yield Finding(step, State.OK, f"{library} with {', '.join(adapters)}")
    if len({library.name.lower() for library in found}) > 1:
        text = "several versions can be found; that which dpctl has loaded counts"
        yield Finding(step, State.NOTE, text)


def has_characters(code_page: str, text: str) -> bool:
    """Whether the code page has all characters of the text."""
    try:
        text.encode(code_page)
    except UnicodeEncodeError:
        return False
    return True


def sycls(machine: WindowsMachine) -> Iterator[Path]:
    """Go through the folders in the order of the search."""
    for folder in machine.folders():
        try:
            yield from sorted(file for file in folder.iterdir() if SYCL.fullmatch(file.name))
        except OSError:  # PATH may name what does not exist.
            continue


def is_there(file: Path) -> bool:
    """Whether a file exists whose folder PATH names, which may be anything."""
    try:
        return file.is_file()
    except (OSError, ValueError):
        return False
