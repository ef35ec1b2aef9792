"""Whether a program of MPI has an MPI library that accesses memory of the device by the device."""

from collections.abc import Iterator

from zeusm._doctor import gpu
from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import PACKAGES, Machine

#: Those of a rank: Intel MPI and MPICH, Open MPI, and launchers with PMIx.
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
OFFLOAD = "I_MPI_OFFLOAD"
FOLDER = str(PACKAGES / "zeusm" / "lib")


def find(machine: Machine) -> Iterator[Finding]:
    """Look at the variables of the launcher, in a program that one has started."""
    variables = machine.environment
    if not any(name in variables for name in RANKS):
        return
    if variables.get(OFFLOAD, "0") == "0":
        text = "an MPI without GPU support ends the process at device memory of a GPU: copy to host memory before"
        yield Finding("MPI", State.NOTE, text, f"export {OFFLOAD}=1, with Intel MPI")
    elif gpu.gpus(machine) or FOLDER in variables.get("LD_LIBRARY_PATH", "").split(":"):
        yield Finding("MPI", State.OK, f"{OFFLOAD}: Intel MPI moves device memory by the device")
    else:
        text = "Intel MPI's launcher looks for GPUs before zeusm's runtime is there, and finds none"
        yield Finding("MPI", State.WRONG, text, "python -m zeusm run mpirun ...")
