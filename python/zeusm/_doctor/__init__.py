"""The steps of `zeusm doctor`, from the GPU to a kernel: what each finds, and the command that mends it."""

import sys
from collections.abc import Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine

if sys.platform == "win32":
    from zeusm._doctor.windows import STEPS, THIS_MACHINE
else:
    from zeusm._doctor.linux import STEPS, THIS_MACHINE

__all__ = ["STEPS", "THIS_MACHINE", "Finding", "Machine", "State", "examine"]


def examine(machine: Machine) -> Iterator[Finding]:
    """Go through all steps; one that fails does not prevent the next ones."""
    for step in STEPS:
        try:
            yield from step(machine)
        except Exception as error:
            name = f"{step.__module__.rpartition('.')[2]}.{step.__name__}"
            text = f"this step of the doctor failed: {type(error).__name__}: {error}"
            yield Finding(name, State.WRONG, text)
