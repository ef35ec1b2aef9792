"""Copies and fills, compared with dpctl on the same runtime and on OpenCL's CPU device, and with the C library."""

import ctypes
import itertools
import os
from functools import partial

import opencl  # noqa: F401 (before SYCL)
import zeusm.memory
from compare import compare, size_name

# isort: split
import dpctl
import dpctl.memory

KINDS = ("Device", "Shared", "Host")
# A simulated GPU copies at its own speed, so `make bench-intel` leaves out the sizes that show nothing else.
LARGEST = int(os.environ.get("ZEUSM_BENCH_LARGEST", str(512 << 20)))
SIZES = tuple(
    size for size in (64, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 512 << 20) if size <= LARGEST
)
# From this size on dpctl on the same runtime is left out: it waits for the same copies of the runtime as zeusm.
LARGE = 64 << 20

LIBC = ctypes.CDLL(None)
LIBC.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
LIBC.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


class Peer:
    """Memory of one library on one device: two allocations of each kind, and a host array."""

    def __init__(self, module, size, **place):
        self.host = bytearray(size)
        self.memory = {
            kind: [getattr(module, f"MemoryUSM{kind}")(size, **place) for _ in range(2)]
            for kind in KINDS
        }
        # Unwritten pages map to one zero page, which is fast to read.
        for memory in itertools.chain(*self.memory.values()):
            memory.memset(1)
        memory.copy_to_host(self.host)

    def write(self, kind):
        return partial(self.memory[kind][0].copy_from_host, self.host)

    def read(self, kind):
        return partial(self.memory[kind][0].copy_to_host, self.host)

    def between(self, source, target):
        return partial(self.memory[target][1].copy_from_device, self.memory[source][0])

    def fill(self, kind):
        return partial(self.memory[kind][0].memset, 7)


class Library:
    """The C library on host memory, for every kind."""

    def __init__(self, size):
        self.blocks = [bytearray(b"\1") * size for _ in range(2)]
        target, source = (
            ctypes.addressof(ctypes.c_char.from_buffer(block)) for block in self.blocks
        )
        copy, fill = (
            partial(LIBC.memcpy, target, source, size),
            partial(LIBC.memset, target, 7, size),
        )
        self.write = self.read = self.between = lambda *_: copy
        self.fill = lambda _: fill


def measure(size):
    taking_part = {
        "zeusm": Peer(zeusm.memory, size),
        "OpenCL": Peer(dpctl.memory, size, queue=dpctl.SyclQueue("opencl:cpu")),
        "libc": Library(size),
    }
    if size < LARGE:
        queue = dpctl.SyclQueue("level_zero:gpu")
        taking_part["dpctl"] = Peer(dpctl.memory, size, queue=queue)

    def row(group, name, choose):
        functions = {name: choose(peer) for name, peer in taking_part.items()}
        compare(f"{group} {size_name(size)}", name, functions)

    for kind in KINDS:
        name = kind.lower()
        row("copy", f"to {name}", lambda peer: peer.write(kind))  # noqa: B023
        row("copy", f"from {name}", lambda peer: peer.read(kind))  # noqa: B023
        row("memset", name, lambda peer: peer.fill(kind))  # noqa: B023
    for source, target in itertools.product(KINDS, repeat=2):
        name = f"{source} to {target}".lower()
        row("copy between kinds", name, lambda peer: peer.between(source, target))  # noqa: B023


def main():
    for size in SIZES:
        measure(size)


if __name__ == "__main__":
    main()
