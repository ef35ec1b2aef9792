"""The steps on Windows, from the display adapters to a kernel."""

from collections.abc import Callable, Iterator
from typing import Any

from zeusm._doctor import folder, sycl, variables, windows_libraries, windows_system
from zeusm._doctor.finding import Finding
from zeusm._doctor.windows_machine import WindowsMachine

THIS_MACHINE = WindowsMachine
# Each takes what it needs of the machine.
STEPS: list[Callable[[Any], Iterator[Finding]]] = [
    folder.find,
    windows_system.find_version,
    windows_system.find_gpu,
    windows_libraries.find_loader,
    variables.find,
    sycl.find_runtime,
    sycl.find_compiler,
    sycl.find_cache,
    windows_libraries.find_sycl,
    sycl.find_dpctl,
    sycl.find_kernels,
]
