"""Limits on this process's memory: that of its control groups, as zeusm applies it, and that of its address space."""

import resource
from collections.abc import Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine
from zeusm._zeusm import _group_limit

GIB = 1 << 30


def find(machine: Machine) -> Iterator[Finding]:
    """Report the smallest limit of the control groups, and that of the address space."""
    limit = _group_limit(machine.root)
    if limit is None:
        yield Finding("memory limit", State.OK, "no control group limits memory")
    else:
        text = f"control groups limit memory and swap space to {limit / GIB:.1f} GiB"
        yield Finding("memory limit", State.NOTE, text)
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        text = f"the address space is limited to {address_space / GIB:.1f} GiB"
        yield Finding("memory limit", State.WRONG, text, "ulimit -v unlimited")
