"""The steps on Linux, from the PCI bus to a kernel."""

from zeusm._doctor import folder, gpu, libraries, limits, mpi, sycl, variables
from zeusm._doctor.machine import Machine

THIS_MACHINE = Machine
STEPS = [
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
