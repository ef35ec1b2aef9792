"""The current folder, which may have been removed."""

from collections.abc import Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine, current_folder


def find(_machine: Machine) -> Iterator[Finding]:
    """Report a current folder that does not exist: SYCL's programs do not end in it."""
    if current_folder() is None:
        text = "it does not exist any more, or cannot be read; programs that use SYCL may not end in it"
        yield Finding("current folder", State.WRONG, text, "cd")
