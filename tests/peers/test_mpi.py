"""MPI sends and receives zeusm's memory: mpi4py with MPICH and with Open MPI, two processes each."""

import os
import sys
from pathlib import Path

import pytest
from conftest import FOLDER, ROOT

sys.path.insert(0, str(ROOT / "tests" / "python"))
from documents import snippets

LIBRARIES = Path(sys.prefix) / "lib"
PROGRAMS = Path(sys.prefix) / "bin"

# The wheels of both libraries install `mpiexec`, so each is called by the name that only it has. The processes share
# the processors of a small machine, and run as root in a container.
LAUNCHERS = {
    "mpich": [PROGRAMS / "mpiexec.hydra", "-n", "2"],
    "openmpi": [
        *(PROGRAMS / "prterun", "--personality", "ompi", "--allow-run-as-root"),
        *("--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-n", "2"),
    ],
}
VARIABLES = {
    "mpich": {"MPI4PY_LIBMPI": str(LIBRARIES / "libmpi.so.12")},
    "openmpi": {
        "MPI4PY_LIBMPI": str(LIBRARIES / "libmpi.so.40"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    },
}
SNIPPETS = [
    pytest.param(code, id=name) for code, name in snippets(of_peers=True) if "mpi4py" in code
]


@pytest.fixture(scope="module", params=LAUNCHERS)
def mpi(request, run):
    """Runs a program in two processes of each MPI library."""

    def start(*command):
        return run(*LAUNCHERS[request.param], *command, **VARIABLES[request.param]).stdout

    return start


@pytest.mark.parametrize("usm_type", ["shared", "host", "device"])
def test_memory_and_arrays_are_sent(mpi, usm_type):
    """On the CPU runtime the host accesses device memory, too, as an MPI library with GPU support does."""
    output = mpi(sys.executable, "-W", "error", FOLDER / "programs" / "mpi_transfers.py", usm_type)
    assert sorted(output.split()) == ["0:complete", "1:complete"]


@pytest.mark.parametrize("code", SNIPPETS)
def test_the_documents(mpi, code):
    mpi(sys.executable, "-W", "error", "-c", code)


def test_the_doctor_says_in_a_rank_that_the_library_does_not_take_device_memory(mpi):
    # A rank's output may be a terminal, for which lines are wrapped.
    output = mpi("env", "COLUMNS=1000", sys.executable, "-m", "zeusm", "doctor")
    assert output.count("an MPI without GPU support ends the process at device memory") == 2


def test_ranks_find_the_device(mpi, environment):
    listing = "import dpctl; print(dpctl.get_num_devices(backend='level_zero') > 0, flush=True)"
    assert mpi(environment, "-c", listing).split() == ["True", "True"]
    ranks = mpi(sys.executable, "-m", "zeusm", "run", sys.executable, "-c", listing)
    assert ranks.split() == ["True", "True"]


def test_the_launcher_passes_the_runtime_on(run):
    """`zeusm run` before the launcher serves the processes that it starts on this machine."""
    listing = "import dpctl; print(dpctl.get_num_devices(backend='level_zero') > 0, flush=True)"
    zeusm_run = [sys.executable, "-m", "zeusm", "run"]
    for name, launcher in LAUNCHERS.items():
        result = run(*zeusm_run, *launcher, sys.executable, "-c", listing, **VARIABLES[name])
        assert result.stdout.split() == ["True", "True"], os.fspath(launcher[0])


def test_the_halo_exchange_of_the_gallery(mpi, tmp_path):
    """The program compares its ranks with one process."""
    picture = tmp_path / "heat.png"
    output = mpi(sys.executable, "-W", "error", ROOT / "examples" / "gallery" / "halo.py", picture)
    assert output.startswith("2 stripes on ")
    assert picture.stat().st_size > 1000
