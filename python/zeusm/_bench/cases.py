"""What `zeusm bench` measures: the same operations by zeusm and by dpctl, on one device and in one process."""

import importlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import zeusm.memory
from zeusm._bench.alternate import Function
from zeusm._bench.spirv import NAME, empty_module

KINDS = ("Device", "Shared", "Host")
SIZES = {"64 B": 64, "1 MiB": 1 << 20}
LARGE = {"64 MiB": 64 << 20}


@dataclass(frozen=True, slots=True)
class Case:
    """One operation: a function for each peer."""

    group: str
    name: str
    functions: dict[str, Function]


@dataclass(frozen=True, slots=True)
class Peer:
    """A library with the memory classes of `dpctl.memory`, and the arguments that name the device."""

    name: str
    module: Any
    place: dict[str, object]

    def make(self, kind: str, size: int) -> Any:
        return self.class_of(kind)(size, **self.place)

    def class_of(self, kind: str) -> Any:
        return getattr(self.module, f"MemoryUSM{kind}")


def peers() -> list[Peer]:
    """zeusm, and dpctl on its default Level Zero device, where it is installed."""
    found = [Peer("zeusm", zeusm.memory, {})]
    show_opencl()
    try:
        memory = importlib.import_module("dpctl.memory")
        queue = importlib.import_module("dpctl").SyclQueue("level_zero")
    except Exception:  # Not installed, or without a device: `zeusm doctor` says why.
        return found
    return [*found, Peer("dpctl", memory, {"queue": queue})]


def show_opencl() -> None:
    """Have SYCL find the OpenCL runtime of the environment as `opencl:cpu`, if it was not imported before."""
    library = os.path.join(sys.prefix, "lib", "libintelocl.so")
    if os.path.exists(library):
        for name in ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS"):
            os.environ.setdefault(name, library)


def cases(found: list[Peer]) -> Iterator[Case]:
    """All cases, of the shortest operations first."""
    yield from allocation(found)
    yield from exchange(found)
    yield from copies(found)
    if any(peer.name == "dpctl" for peer in found):
        yield from launches()


def allocation(found: list[Peer]) -> Iterator[Case]:
    for kind, (name, size) in itertools.product(KINDS, (SIZES | LARGE).items()):
        functions: dict[str, Function] = {
            peer.name: partial(peer.class_of(kind), size, **peer.place) for peer in found
        }
        yield Case("allocate and free", f"{kind.lower()} {name}", functions)


def exchange(found: list[Peer]) -> Iterator[Case]:
    memory = {peer.name: peer.make("Shared", 4096) for peer in found}
    interface = attrgetter("__sycl_usm_array_interface__")
    if len(found) == 2:  # The interface has dpctl's objects.
        read: dict[str, Function] = {
            name: partial(interface, each) for name, each in memory.items()
        }
        yield Case("exchange", "read the interface", read)
    view: dict[str, Function] = {name: viewing(each) for name, each in memory.items()}
    yield Case("exchange", "memoryview", view)
    if len(found) == 2:
        wrap: dict[str, Function] = {
            peer.name: partial(peer.module.as_usm_memory, memory[other.name])
            for peer, other in zip(found, reversed(found), strict=True)
        }
        yield Case("exchange", "wrap the other's object", wrap)


def copies(found: list[Peer]) -> Iterator[Case]:
    for name, size in (SIZES | LARGE).items():
        host = bytearray(size)
        memory = {
            peer.name: [peer.make(kind, size) for kind in ("Device", "Device", "Shared")]
            for peer in found
        }
        for each in itertools.chain(*memory.values()):
            each.memset(1)  # Unwritten pages map to one zero page, which is fast to read.

        for title, make in COPIES.items():
            functions = {peer: make(host, *each) for peer, each in memory.items()}
            yield Case("copy", f"{title}, {name}", functions)


def viewing(memory: Any) -> Function:
    return lambda: memoryview(memory)


#: Copies by name: from a host buffer, two device allocations and a shared one to the function.
COPIES: dict[str, Callable[[bytearray, Any, Any, Any], Function]] = {
    "host to device": lambda host, a, _b, _c: partial(a.copy_from_host, host),
    "device to host": lambda host, a, _b, _c: partial(a.copy_to_host, host),
    "device to device": lambda _h, a, b, _c: partial(b.copy_from_device, a),
    "device to shared": lambda _h, a, _b, c: partial(c.copy_from_device, a),
    "fill device": lambda _h, a, _b, _c: partial(a.memset, 7),
}


def launches() -> Iterator[Case]:
    """An empty kernel through Level Zero, beside dpctl's OpenCL device of this processor."""
    functions: dict[str, Function] = {}
    dpctl = importlib.import_module("dpctl")
    program = importlib.import_module("dpctl.program")
    for peer, device in {"zeusm": "level_zero", "OpenCL": "opencl:cpu"}.items():
        try:
            queue = dpctl.SyclQueue(device)
            made = program.create_program_from_spirv(queue, empty_module())
            functions[peer] = launch(queue, made.get_sycl_kernel(NAME))
        except Exception:  # Without an OpenCL runtime there is no peer, and on the CPU no kernel.
            continue
    if "zeusm" in functions:
        yield Case("kernel", "launch an empty one and wait", functions)


def launch(queue: Any, kernel: Any) -> Function:
    return lambda: queue.submit(kernel, [], [1]).wait()
