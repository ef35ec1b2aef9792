"""Pools that sleep: the time of `pool.suspend` and `pool.resume`, beside what programs do without them by dpctl, and the resident
memory that is left meanwhile."""

import sys
from pathlib import Path

import zeusm.memory as zm
from compare import compare, report, size_name

# isort: split
import dpctl.memory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python"))
from memory_of_process import resident

SIZE, COUNT = 64 << 20, 4


def moved(blocks):
    """Copies dpctl's memory to the host, frees it, allocates it again, elsewhere, and copies back."""
    saved = [block.copy_to_host() for block in blocks]
    blocks.clear()
    for contents in saved:
        block = dpctl.memory.MemoryUSMDevice(SIZE)
        block.copy_from_host(contents)
        blocks.append(block)


def filled(pool, count):
    blocks = [pool.malloc(SIZE) for _ in range(count)]
    for block in blocks:
        block.memset(1)
    return blocks


def slept(pool):
    pool.suspend()
    pool.resume()


def main():
    pool = zm.MemoryPool("device", suspendable=True)
    filled(pool, 1)  # What the first use of a pool takes.
    pool.free_all_blocks()
    before = resident()
    ours = filled(pool, COUNT)
    taken = resident() - before
    pool.suspend(keep=False)
    # At least a byte, as the process may have become smaller otherwise.
    left = max(resident() - before, 1)
    report("resident memory of a suspended pool", "", "×", {"zeusm": left / taken})  # noqa: RUF001
    pool.resume()
    theirs = [dpctl.memory.MemoryUSMDevice(SIZE) for _ in range(COUNT)]
    functions = {"zeusm": lambda: slept(pool), "dpctl": lambda: moved(theirs)}
    compare("suspend and resume a pool", size_name(SIZE * len(ours)), functions)


if __name__ == "__main__":
    main()
