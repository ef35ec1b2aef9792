"""The areas of the tests, one for each program, and what each needs."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Area:
    """How the tests of one program are run."""

    # Seconds for one test. A busy machine needs several times what an idle one does.
    limit: float = 60
    # Whether its tests measure times, so that other processes must not interrupt them.
    is_timed: bool = False
    variables: dict = field(default_factory=dict)


# A program without tests, from which new ones are copied.
EMPTY = "template"
TWO_GPUS = {"ZEUSM_CPU_DEVICES": "2"}
TILES = {"ZEUSM_CPU_TILES": "2"}
AREAS = {
    "context": Area(variables=TWO_GPUS),
    # Kernels of eight queues that take minutes of two processors.
    "cmdlist": Area(limit=300, is_timed=True),
    "cmdqueue": Area(is_timed=True),
    "device": Area(variables=TWO_GPUS | TILES),
    "event": Area(is_timed=True, variables=TILES),
    "ipc_multidevice": Area(variables=TWO_GPUS),
    # Fourteen million calls of eight threads.
    "ipc_put_handle": Area(limit=300),
    "ipc_memory": Area(variables=TWO_GPUS),
    "ipc_multisubdevice": Area(variables=TILES),
    # Nine queues that pass 256 MiB each.
    "ipc_p2p_memory": Area(limit=300, variables=TWO_GPUS),
    # Kernels over a GiB, and a thousand allocations of megabytes.
    "memory": Area(limit=300),
    "memory_overcommit": Area(variables=TWO_GPUS),
    "multiprocess": Area(variables=TWO_GPUS | TILES),
    "module": Area(variables=TILES),
    # Sixteen threads that build two thousand modules each.
    "multithread": Area(limit=600),
    "p2p": Area(variables=TWO_GPUS | TILES),
    "residency": Area(variables=TWO_GPUS),
    "usm": Area(variables=TWO_GPUS),
}


def area(name):
    """What the area of this name needs; those without an entry need nothing of their own."""
    return AREAS.get(name, Area())
