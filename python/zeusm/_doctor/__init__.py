"""The steps of `zeusm doctor`, from the PCI bus to a kernel: what each finds, and the command that mends it."""

from collections.abc import Callable, Iterator

from zeusm._doctor import folder, gpu, libraries, limits, mpi, sycl, variables
from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine

__all__ = ["STEPS", "Finding", "Machine", "State", "examine"]

Step = Callable[[Machine], Iterator[Finding]]

STEPS: list[Step] = [
    folder.find,
    gpu.find,
    libraries.find_loader,
    libraries.find_driver,
    variables.find,
    limits.find,
    mpi.find,
    sycl.find_runtime,
    sycl.find_ipc,
    sycl.find_compiler,
    sycl.find_cache,
    sycl.find_dpctl,
    sycl.find_kernels,
]


def examine(machine: Machine) -> Iterator[Finding]:
    """Go through all steps; one that fails does not prevent the next ones."""
    for step in STEPS:
        try:
            yield from step(machine)
        except Exception as error:
            name = f"{step.__module__.rpartition('.')[2]}.{step.__name__}"
            text = f"this step of the doctor failed: {type(error).__name__}: {error}"
            yield Finding(name, State.WRONG, text)
