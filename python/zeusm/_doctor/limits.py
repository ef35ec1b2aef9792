"""Limits on this process's memory: of its control groups (both versions), and of its address space."""

import resource
from collections.abc import Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine

GIB = 1 << 30
#: Larger limits of version 1 mean that there is none.
UNLIMITED = 1 << 60


def find(machine: Machine) -> Iterator[Finding]:
    """Report the smallest limit of the control groups, and that of the address space."""
    limit = min(group_limits(machine), default=None)
    if limit is None:
        yield Finding("memory limit", State.OK, "no control group limits memory")
    else:
        text = f"control groups limit memory to {limit / GIB:.1f} GiB"
        yield Finding("memory limit", State.NOTE, text)
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        text = f"the address space is limited to {address_space / GIB:.1f} GiB"
        yield Finding("memory limit", State.WRONG, text, "ulimit -v unlimited")


def group_limits(machine: Machine) -> list[int]:
    """Return the limits of the process's control groups, and of all groups around them."""
    limits = []
    for line in (machine.read("/proc/self/cgroup") or "").splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder = "/sys/fs/cgroup/memory" if controllers else "/sys/fs/cgroup"
        file = "memory.limit_in_bytes" if controllers else "memory.max"
        parts = [part for part in path.split("/") if part]
        for length in range(len(parts) + 1):
            text = machine.read("/".join([folder, *parts[:length], file]))
            if text and text.isdecimal() and int(text) < UNLIMITED:
                limits.append(int(text))
    return limits
