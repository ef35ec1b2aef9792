"""Intel MPI with GPU offload takes zeusm's memory for the device's, and moves it by the device. oneCCL's C API beside it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PREFIX = Path(sys.prefix)
#: What Intel's script of variables sets, for a wheel.
VARIABLES = {
    "FI_PROVIDER": "shm",
    "FI_PROVIDER_PATH": str(PREFIX / "lib" / "libfabric" / "prov"),
    "I_MPI_ROOT": str(PREFIX),
    "I_MPI_OFFLOAD": "1",
    "LD_LIBRARY_PATH": f"{PREFIX / 'lib'}:{PREFIX / 'lib' / 'libfabric'}",
    "MPI4PY_LIBMPI": str(PREFIX / "lib" / "libmpi.so.12"),
    # The benchmarks do not import zeusm, which finds the environment's OpenCL by itself.
    "ZEUSM_OPENCL_LIBRARY": str(PREFIX / "lib" / "libintelocl.so"),
}
KINDS = ["device", "shared", "host"]
#: Sendrecv, allreduce, bcast, allgather and alltoall of four types, eight sizes and three offsets, and once of 64 MiB; put,
#: accumulate, get and dpnp's arrays of four types and three sizes.
COMPARED = 5 * (4 * 8 * 3 + 1) + 4 * (4 * 3)


@pytest.fixture(scope="session")
def run():
    """Runs a command in ranks of Intel MPI, with the CPU runtime before all of them."""

    def start(*command, zeusm="run", ranks=2, **variables):
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment["PATH"] = f"{PREFIX / 'bin'}:{environment['PATH']}"
        command = [sys.executable, "-m", "zeusm", zeusm, "mpirun", "-n", ranks, *command]
        with subprocess.Popen(
            [*map(str, command)],
            env=environment | VARIABLES | variables,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as launcher:
            try:
                output, errors = launcher.communicate(timeout=280)
            except subprocess.TimeoutExpired:
                os.killpg(launcher.pid, signal.SIGKILL)  # The ranks, too.
                raise
        assert launcher.returncode == 0, f"{output}\n{errors}"
        return output, errors

    return start


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("zeusm", "ranks", "variables"),
    [
        pytest.param("run", 2, {}, id="plain"),
        pytest.param("run", 2, {"ZEUSM_CPU_DEVICES": "2"}, id="a-device-each"),
        pytest.param("run", 4, {"ZEUSM_CPU_DEVICES": "2"}, id="two-on-each-device"),
        pytest.param("check", 2, {}, id="checked"),
    ],
)
def test_what_ranks_send_arrives(run, kind, zeusm, ranks, variables):
    output, errors = run(
        *(sys.executable, HERE / "transfers.py", kind),
        zeusm=zeusm,
        ranks=ranks,
        **variables,
    )
    column = kind != "device"
    for rank in range(ranks):
        assert f"{rank}: {COMPARED + column} compared\n" in output
    assert output.count("derived types refused") == (0 if column else ranks)
    assert "zeusm check: " not in errors


@pytest.mark.parametrize("kind", KINDS)
def test_benchmarks_of_mpi_run_without_a_finding(run, kind):
    options = ["-mem_alloc_type", kind, "-npmin", "2", "-iter", "5", "-msglog", "0:20"]
    output, errors = run("IMB-MPI1-GPU", *options, zeusm="check")
    measured = set(re.findall(r"Benchmarking (\w+)", output))
    assert {"PingPong", "Sendrecv", "Allreduce", "Bcast", "Alltoall", "Gather"} <= measured
    assert "zeusm check: " not in errors
    assert "All processes entering MPI_Finalize" in output


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("ranks", "variables"),
    [
        pytest.param(2, {}, id="plain"),
        pytest.param(2, {"ZEUSM_CPU_DEVICES": "2"}, id="a-device-each"),
        pytest.param(4, {"ZEUSM_CPU_DEVICES": "2"}, id="two-on-each-device"),
    ],
)
def test_collectives_of_oneccl(run, kind, ranks, variables):
    output, _ = run(
        *(sys.executable, HERE / "collectives.py", kind),
        ranks=ranks,
        CCL_ROOT=str(PREFIX),
        **variables,
    )
    for rank in range(ranks):
        assert f"{rank}: {6 * 4 * 4} compared\n" in output
