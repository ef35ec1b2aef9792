"""Host memory of the program as USM: `MemoryUSMHost.from_host`, which takes it where it is, beside dpctl's allocation and copy."""

from functools import partial

import zeusm.memory as zm
from compare import compare, size_name

# isort: split
import dpctl.memory
import numpy


def copied(contents):
    memory = dpctl.memory.MemoryUSMHost(contents.nbytes)
    memory.copy_from_host(contents)
    return memory


def main():
    for size in (1 << 20, 64 << 20):
        contents = numpy.ones(size, "u1")
        functions = {
            "zeusm": partial(zm.MemoryUSMHost.from_host, contents),
            "dpctl": partial(copied, contents),
        }
        compare("memory of the host as USM", size_name(size), functions)


if __name__ == "__main__":
    main()
