"""The time of operations on zeusm.memory and dpctl.memory objects, on the same device in the same process."""

from functools import partial
from operator import attrgetter

import zeusm.memory
from compare import compare, size_name

# isort: split
import dpctl
import dpctl.memory
import numpy

KINDS = ("Device", "Shared", "Host")
SMALL = (64, 4 << 10, 64 << 10, 1 << 20)
LARGE = (64 << 20,)


def classes(kind):
    """zeusm's class and dpctl's."""
    name = f"MemoryUSM{kind}"
    return getattr(zeusm.memory, name), getattr(dpctl.memory, name)


def calls(queue):
    """Functions without arguments that make memory of a size, by how they give the queue.

    They are closures, as `functools.partial` takes half as long as an allocation to pass a keyword on.
    """
    return {
        "": lambda make, size: lambda: make(size),
        ", queue=": lambda make, size: lambda: make(size, queue=queue),
    }


def allocation():
    """Allocation, compared also with NumPy, which calls only the C library."""
    empty, byte = numpy.empty, numpy.uint8
    for group, sizes in {
        "allocate and free 64 B to 1 MiB": SMALL,
        "allocate and free 64 MiB": LARGE,
    }.items():
        for kind in KINDS:
            ours, theirs = classes(kind)
            for size in sizes:
                for place, call in calls(dpctl.SyclQueue("level_zero:gpu")).items():
                    functions = {
                        "zeusm": call(ours, size),
                        "dpctl": call(theirs, size),
                        "NumPy": lambda size=size: empty(size, byte),
                    }
                    compare(group, f"{kind.lower()} {size_name(size)}{place}", functions)


def pool():
    """Allocation by the fastest spelling, compared with NumPy's."""
    for kind in KINDS:
        malloc = zeusm.memory.get_pool(kind.lower()).malloc
        for size in SMALL:
            functions = {
                "zeusm": partial(malloc, size),
                "NumPy": partial(numpy.empty, size, numpy.uint8),
            }
            compare("allocate and free by a pool", f"{kind.lower()} {size_name(size)}", functions)


class Foreign:
    """An object of a third library, which exports dpctl's memory with a context capsule."""

    def __init__(self, memory):
        self.memory = memory
        self.interface = memory.__sycl_usm_array_interface__
        self.capsule = memory.sycl_context._get_capsule

    @property
    def __sycl_usm_array_interface__(self):
        # A capsule can be used once.
        return {**self.interface, "syclobj": self.capsule()}


def exchange():
    """Export and import of memory. The time of an import includes the export by the other library."""
    ours, theirs = (make(4096) for make in classes("Shared"))
    foreign = Foreign(theirs)
    interface = attrgetter("__sycl_usm_array_interface__")
    wrap, wrap_theirs = zeusm.memory.as_usm_memory, dpctl.memory.as_usm_memory
    for name, functions in {
        "read __sycl_usm_array_interface__": (
            partial(interface, ours),
            partial(interface, theirs),
        ),
        "take in a context capsule": (partial(wrap, foreign), partial(wrap_theirs, foreign)),
        "wrap the other's object": (partial(wrap, theirs), partial(wrap_theirs, ours)),
        "be wrapped by dpctl": (partial(wrap_theirs, ours), partial(wrap_theirs, foreign)),
    }.items():
        compare(name, "", dict(zip(("zeusm", "dpctl"), functions, strict=True)))
    for kind in ("Shared", "Host"):
        ours, theirs = (make(4096) for make in classes(kind))
        functions = {
            "zeusm": partial(memoryview, ours),
            "dpctl": partial(memoryview, theirs),
            "bytearray": partial(memoryview, bytearray(4096)),
        }
        compare("memoryview", kind.lower(), functions)


def main():
    allocation()
    pool()
    exchange()


if __name__ == "__main__":
    main()
