"""Environment variables that decide which runtime serves and which devices programs see."""

from collections.abc import Iterable, Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine

#: Each with its effect.
VARIABLES = {
    "ONEAPI_DEVICE_SELECTOR": "SYCL shows only the devices that it names",
    "SYCL_DEVICE_ALLOWLIST": "SYCL shows only the devices that it names",
    "UR_ADAPTERS_FORCE_LOAD": "SYCL loads only these adapters",
    "ZE_AFFINITY_MASK": "Level Zero shows only the devices that it names",
    "ZE_FLAT_DEVICE_HIERARCHY": "it selects whether GPUs or their tiles are devices",
    "ZE_ENABLE_ALT_DRIVERS": "the Level Zero loader opens these drivers only",
    "ZEUSM_RUNTIME": "it selects zeusm's runtime",
    "ZEUSM_ENABLE": "0 (off, false, no) disables `zeusm enable`",
    "ZEUSM_POOL": "0 (off, false, no) disables zeusm's memory pools",
    "ZEUSM_CPU_DEVICES": "the CPU runtime presents that many GPUs",
    "ZEUSM_CPU_TILES": "the CPU runtime presents GPUs with that many tiles",
    "ZEUSM_CPU_PEER_ACCESS": "it selects whether the CPU runtime's devices access each other's memory",
    "ZEUSM_CPU_DISCRETE": "it selects whether the CPU runtime's GPUs are discrete ones",
    "ZEUSM_CPU_STRICT": "it selects whether the CPU runtime follows the specification by the letter",
    "ZEUSM_CPU_LIBRARY": "it names the CPU runtime's library",
    "ZEUSM_CHECK": "it selects whether zeusm's checker is on",
    "ZEUSM_CHECK_EXIT_CODE": "programs with a finding of the checker end with it",
    "ZEUSM_CPU_ENGINES": "it selects which queues of the CPU runtime share an engine",
    "ZEUSM_OPENCL_LIBRARY": "the CPU runtime executes kernels by this library",
    "CL_CONFIG_CPU_TARGET_ARCH": "the OpenCL runtime for the CPU builds kernels for that instruction set",
    "ZEUSM_CACHE_DIR": "the CPU runtime keeps built modules there",
    "ZEUSM_CACHE_SIZE": "the CPU runtime keeps so many MiB of built modules; 0 keeps none",
    "ZEUSM_COMPILER_SECONDS": "it limits the processor time for building a module; 0 is no limit",
}

#: Those that hide devices from SYCL.
HIDING = (
    "ONEAPI_DEVICE_SELECTOR",
    "SYCL_DEVICE_ALLOWLIST",
    "UR_ADAPTERS_FORCE_LOAD",
    "ZE_AFFINITY_MASK",
)


def named(machine: Machine, error: str) -> str | None:
    """Return the command that unsets the variable which an error names, if one is set. Of several the last is the cause."""
    return unset(
        machine,
        sorted((name for name in VARIABLES if name in error), key=error.rfind, reverse=True),
    )


def unset(machine: Machine, names: Iterable[str]) -> str | None:
    """Return the command that unsets the first of the variables which are set."""
    return next((machine.unset(name) for name in names if name in machine.environment), None)


def find(machine: Machine) -> Iterator[Finding]:
    """List the variables that are set."""
    for name, effect in VARIABLES.items():
        if (value := machine.environment.get(name)) is not None:
            yield Finding("variable", State.NOTE, f"{name}={value}: {effect}", machine.unset(name))
