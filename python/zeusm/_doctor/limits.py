"""Limits on this process's memory: that of its control groups, as zeusm applies it, and those of `ulimit`."""

import resource
from collections.abc import Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine
from zeusm._zeusm import _group_limit

GIB = 1 << 30


def find(machine: Machine) -> Iterator[Finding]:
    """Report the smallest limit of the control groups, and those of `ulimit`."""
    limit = _group_limit(machine.root)
    if limit is None:
        yield Finding("memory limit", State.OK, "no control group limits memory")
    else:
        text = f"control groups limit memory and swap space to {limit / GIB:.1f} GiB"
        yield Finding("memory limit", State.NOTE, text)
    for number, what, option in (
        (resource.RLIMIT_AS, "the address space", "-v"),
        (resource.RLIMIT_DATA, "the private memory", "-d"),
    ):
        limit = resource.getrlimit(number)[0]
        if limit != resource.RLIM_INFINITY:
            text = f"{what} is limited to {limit / GIB:.1f} GiB"
            yield Finding("memory limit", State.WRONG, text, f"ulimit {option} unlimited")
