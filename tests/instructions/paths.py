"""Repeats the shortest calls of zeusm; callgrind writes the instructions of each at the calls of `getppid`.

python paths.py COUNT
"""

import os
import sys

import zeusm
import zeusm.memory

# isort: split
import dpctl
import dpctl.memory

WARM_UP = 200


class Foreign:
    """An object of a third library, which exports dpctl's memory with a context capsule."""

    def __init__(self, memory):
        self.interface = memory.__sycl_usm_array_interface__
        self.capsule = memory.sycl_context._get_capsule

    @property
    def __sycl_usm_array_interface__(self):
        # A capsule can be used once.
        return {**self.interface, "syclobj": self.capsule()}


def paths():
    queue = dpctl.SyclQueue("level_zero:gpu")
    pool = zeusm.memory.MemoryPool("shared")
    shared = zeusm.memory.MemoryUSMShared(4096)
    array = shared.view("f4")
    theirs = dpctl.memory.MemoryUSMShared(4096, queue=queue)
    foreign = Foreign(theirs)
    sixty_four = bytes(64)
    small = zeusm.memory.MemoryUSMShared(64)
    host = zeusm.memory.MemoryUSMHost(4096)
    wrap = zeusm.memory.as_usm_memory
    return {
        "MemoryUSMShared(64)": lambda: zeusm.memory.MemoryUSMShared(64),
        "MemoryUSMDevice(64, queue=queue)": lambda: zeusm.memory.MemoryUSMDevice(64, queue=queue),
        "pool.malloc(64)": lambda: pool.malloc(64),
        "zeusm.empty(16)": lambda: zeusm.empty(16),
        "__sycl_usm_array_interface__": lambda: shared.__sycl_usm_array_interface__,
        "memoryview(shared)": lambda: memoryview(shared),
        "memoryview(host)": lambda: memoryview(host),
        "as_usm_memory(capsule)": lambda: wrap(foreign),
        "as_usm_memory(dpctl's)": lambda: wrap(theirs),
        "shared.view('f4')": lambda: shared.view("f4"),
        "array[1:9]": lambda: array[1:9],
        "small.memset(7)": lambda: small.memset(7),
        "small.copy_from_host(64)": lambda: small.copy_from_host(sixty_four),
        "array.__dlpack__()": array.__dlpack__,
    }


def repeat(function, count):
    for _ in range(count):
        function()


def main():
    count = int(sys.argv[1])
    for name, function in paths().items():
        repeat(function, WARM_UP)
        os.getppid()
        repeat(function, count)
        os.getppid()
        print(name, flush=True)


if __name__ == "__main__":
    main()
