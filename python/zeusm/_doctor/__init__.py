"""The steps of `zeusm doctor`, from the PCI bus to a kernel: what each finds, and the command that mends it."""

from collections.abc import Callable, Iterator

from zeusm._doctor import gpu, libraries, limits, sycl, variables
from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine

__all__ = ["STEPS", "Finding", "Machine", "State", "examine"]

Step = Callable[[Machine], Iterator[Finding]]

STEPS: list[Step] = [
    gpu.find,
    libraries.find_loader,
    libraries.find_driver,
    variables.find,
    limits.find,
    sycl.find_runtime,
    sycl.find_ipc,
    sycl.find_compiler,
    sycl.find_dpctl,
    sycl.find_kernels,
]


def examine(machine: Machine) -> Iterator[Finding]:
    """Go through all steps."""
    for step in STEPS:
        yield from step(machine)
