"""Device memory of one process for all others: by an IPC handle, and through the host. The processes are ranks of MPICH.

Each call ends when every other process has said that it has the bytes: in new device memory of its own ("copied"), or in the memory
that it has opened ("opened"). Each call makes and opens a handle; the peers' shared memory and buffers stay.
"""

import mmap
import os
import subprocess
import sys
import tempfile
from functools import partial
from multiprocessing.connection import Client, Listener
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import zeusm.memory as zm
from compare import ROUNDS, report, size_name

LARGEST = int(os.environ.get("ZEUSM_BENCH_LARGEST", str(64 << 20)))
PROCESSES = (2, 4, 8)
#: What the copies of all processes may have, so that a machine of 16 GiB has room for them and for what the ways need beside them.
ROOM = 4 << 30
#: The ways through the host, whose time both of zeusm's ways are compared with.
PEERS = ("pickle", "shared memory", "MPI")


def mapped(file, size):
    """The shared memory of an open file, or of another process's."""
    return mmap.mmap(file.fileno(), size)


def sizes(processes):
    largest = min(1 << 30, ROOM // processes)
    return [size for size in (1 << 10, 64 << 10, 1 << 20, 64 << 20, largest) if size <= LARGEST]


class Owner:
    """The process that has the memory, and a connection to each of the others."""

    def __init__(self, world):
        with Listener(family="AF_UNIX", backlog=world.size) as listener:
            world.bcast(listener.address)
            self.others = [listener.accept() for _ in range(world.size - 1)]
        self.world = world

    def tell(self, message):
        pickled = ForkingPickler.dumps(message)
        for other in self.others:
            other.send_bytes(pickled)

    def wait(self):
        for other in self.others:
            other.recv_bytes()

    def give(self, way, memory, host, staging):
        """Hands the memory to all others in one way."""
        match way:
            case "opened" | "copied":
                handle = memory.ipc_handle()
                self.tell((way, handle))
            case "pickle":
                self.tell((way, memory))
            case "shared memory":
                memory.copy_to_host(host)
                self.tell((way, None))
            case "MPI":
                memory.copy_to_host(staging)
                self.tell((way, None))
                self.world.Bcast(staging)
        self.wait()

    def measure(self, size):
        from zeusm._bench.alternate import alternate, medians

        memory = zm.MemoryUSMDevice(size)
        memory.memset(7)
        staging = bytearray(size)
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            file.truncate(size)
            host = mapped(file, size)
            self.tell(("size", (size, f"/proc/{os.getpid()}/fd/{file.fileno()}")))
            self.wait()
        ways = {
            way: partial(self.give, way, memory, host, staging)
            for way in ("opened", "copied", *PEERS)
        }
        # Each round is one call, and such functions get half of the rounds. Short calls are late by turns of other processes.
        rounds = 2 * ROUNDS * (10 if size <= 1 << 20 else 1)
        times = medians(alternate(ways, rounds, budget=0))
        name = f"{size_name(size)}, {self.world.size} processes"
        for way in ("opened", "copied"):
            values = {"zeusm": times[way], **{peer: times[peer] for peer in PEERS}}
            report(f"device memory for others, {way}", name, "s", values)


def take(way, argument, size, host, staging, world):
    """Gets the owner's memory in one way."""
    match way:
        case "opened":
            zm.IPCMemoryHandle.open(argument).close()
        case "copied":
            with zm.IPCMemoryHandle.open(argument) as theirs:
                zm.MemoryUSMDevice(theirs, copy=True)
        case "shared memory":
            zm.MemoryUSMDevice(size).copy_from_host(host)
        case "MPI":
            world.Bcast(staging)
            zm.MemoryUSMDevice(size).copy_from_host(staging)


def serve(world):
    """One of the others, until the owner ends."""
    with Client(world.bcast(None)) as owner:
        while True:
            way, argument = owner.recv()  # which makes the memory of a pickled one
            match way:
                case "end":
                    return
                case "size":
                    size, path = argument
                    with open(path, "r+b") as file:
                        host = mapped(file, size)
                    staging = bytearray(size)
                case _:
                    take(way, argument, size, host, staging, world)
            del argument
            owner.send_bytes(b"")


def rank():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.rank:
        serve(world)
        return
    owner = Owner(world)
    for size in sizes(world.size):
        owner.measure(size)
    owner.tell(("end", None))


def main():
    prefix = Path(sys.prefix)
    environment = os.environ | {"MPI4PY_LIBMPI": str(prefix / "lib" / "libmpi.so.12")}
    for processes in PROCESSES:
        launcher = [prefix / "bin" / "mpiexec.hydra", "-n", str(processes)]
        command = [*launcher, sys.executable, __file__, "rank"]
        subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    rank() if sys.argv[1:] else main()
