"""The Level Zero loader, and Intel's driver behind it. Each is opened in a new process."""

from collections.abc import Iterator

from zeusm._doctor import distribution
from zeusm._doctor.finding import Finding, State
from zeusm._doctor.gpu import WSL_NODE, gpus
from zeusm._doctor.machine import Machine
from zeusm._doctor.opened import opened

LOADER = "libze_loader.so.1"
DRIVER = "libze_intel_gpu.so.1"


def find_loader(machine: Machine) -> Iterator[Finding]:
    """Open the Level Zero loader."""
    yield find(machine, "Level Zero loader", LOADER, "libze1")


def find_driver(machine: Machine) -> Iterator[Finding]:
    """Open Intel's driver."""
    yield find(machine, "Level Zero driver", DRIVER, "libze-intel-gpu1")


def find(machine: Machine, step: str, name: str, package: str) -> Finding:
    found, error = opened(machine, name)
    if found:
        return Finding(step, State.OK, found)
    is_missing = error.startswith(f"{name}: cannot open shared object file")
    is_wsl = machine.path(WSL_NODE).exists()
    if is_missing and not gpus(machine) and not is_wsl:
        return Finding(step, State.ABSENT, f"{name} is not installed; no GPU needs it")
    if is_missing and is_wsl:
        error = f"{name} is not installed; an Intel GPU needs it under WSL, too"
    # Otherwise the dynamic linker names a library that this one needs.
    remedy, text = distribution.install(machine, package, again=not is_missing)
    return Finding(step, State.WRONG, f"{error}; {text}" if text else error, remedy)
