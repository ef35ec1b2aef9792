"""Programs in ranks of Intel MPI, with the CPU runtime before all of them."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

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
#: In the environment of all processes of a run, with a value of its own.
MARK = "ZEUSM_TEST_RUN"


def processes(mark):
    """The processes of a run that still exist."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:  # It has ended, or is another user's.
            pass
    return found


def end(mark):
    """Ends what is left of a run, and returns it. Compilers of kernels end when they see that their program has."""
    last = time.monotonic() + 60
    while (left := processes(mark)) and time.monotonic() < last:
        time.sleep(0.05)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return left


@pytest.fixture
def mpirun():
    """Runs `mpirun` with arguments, and returns its status, output and errors. No process is left behind."""

    def start(*arguments, zeusm="run", **variables):
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment["PATH"] = f"{PREFIX / 'bin'}:{environment['PATH']}"
        mark = uuid.uuid4().hex
        command = [sys.executable, "-m", "zeusm", zeusm, "mpirun", *arguments]
        with subprocess.Popen(
            [*map(str, command)],
            env=environment | VARIABLES | variables | {MARK: mark},
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as launcher:
            try:
                output, errors = launcher.communicate(timeout=280)
            except subprocess.TimeoutExpired:
                for process in processes(mark):
                    os.kill(process, signal.SIGKILL)
                raise
        assert not end(mark)
        return launcher.returncode, output, errors

    return start


@pytest.fixture
def run(mpirun):
    """Runs a command in ranks, which must succeed."""

    def start(*command, ranks=2, **options):
        status, output, errors = mpirun("-n", ranks, *command, **options)
        assert status == 0, f"{output}\n{errors}"
        return output, errors

    return start
