"""Environment variables that decide which runtime serves and which devices programs see."""

from collections.abc import Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine

#: Each with its effect.
VARIABLES = {
    "ONEAPI_DEVICE_SELECTOR": "SYCL shows only the devices that it names",
    "SYCL_DEVICE_ALLOWLIST": "SYCL shows only the devices that it names",
    "ZE_AFFINITY_MASK": "Level Zero shows only the devices that it names",
    "ZE_FLAT_DEVICE_HIERARCHY": "it selects whether GPUs or their tiles are devices",
    "ZE_ENABLE_ALT_DRIVERS": "the Level Zero loader opens these drivers only",
    "ZEUSM_RUNTIME": "it selects zeusm's runtime",
    "ZEUSM_ENABLE": "0 disables `zeusm enable`",
    "ZEUSM_POOL": "0 disables zeusm's memory pools",
    "ZEUSM_CPU_DEVICES": "the CPU runtime presents that many GPUs",
    "ZEUSM_CPU_TILES": "the CPU runtime presents GPUs with that many tiles",
    "ZEUSM_OPENCL_LIBRARY": "the CPU runtime executes kernels by this library",
}


def find(machine: Machine) -> Iterator[Finding]:
    """List the variables that are set."""
    for name, effect in VARIABLES.items():
        value = machine.environment.get(name)
        if value is not None:
            yield Finding("variable", State.NOTE, f"{name}={value}: {effect}", f"unset {name}")
