"""Intel MPI with GPU offload takes zeusm's memory for the device's, and moves it by the device. oneCCL's C API beside it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PREFIX

HERE = Path(__file__).resolve().parent
KINDS = ["device", "shared", "host"]
#: Sendrecv, allreduce, bcast, allgather, gather and alltoall of four types, eight sizes and three offsets, and once of 64 MiB;
#: put, accumulate, get and dpnp's arrays of four types and three sizes.
COMPARED = 6 * (4 * 8 * 3 + 1) + 4 * (4 * 3)


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
    assert "zeusm check: findings" not in errors
    assert "failure in ze" not in output + errors


@pytest.mark.parametrize("kind", KINDS)
def test_benchmarks_of_mpi_run_without_a_finding(run, kind):
    options = ["-mem_alloc_type", kind, "-npmin", "2", "-iter", "5", "-msglog", "0:20"]
    output, errors = run("IMB-MPI1-GPU", *options, zeusm="check")
    measured = set(re.findall(r"Benchmarking (\w+)", output))
    assert {"PingPong", "Sendrecv", "Allreduce", "Bcast", "Alltoall", "Gather"} <= measured
    assert "zeusm check: findings" not in errors
    assert "All processes entering MPI_Finalize" in output


RANKS = pytest.mark.parametrize(
    ("ranks", "variables"),
    [
        pytest.param(2, {}, id="plain"),
        pytest.param(2, {"ZEUSM_CPU_DEVICES": "2"}, id="a-device-each"),
        pytest.param(4, {"ZEUSM_CPU_DEVICES": "2"}, id="two-on-each-device"),
    ],
)


@pytest.mark.parametrize("kind", KINDS)
@RANKS
def test_collectives_of_oneccl(run, kind, ranks, variables):
    output, _ = run(
        *(sys.executable, HERE / "collectives.py", kind),
        ranks=ranks,
        CCL_ROOT=str(PREFIX),
        **variables,
    )
    for rank in range(ranks):
        assert f"{rank}: {6 * 4 * 4} compared\n" in output


@pytest.fixture(scope="module")
def cpp(tmp_path_factory):
    """A library over oneCCL's C++ API. Without the definition, SYCL's headers have attributes at places that g++ refuses."""
    library = tmp_path_factory.mktemp("oneccl") / "collectives.so"
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{PREFIX / 'include'}"]
    command += ["-DSYCL_LANGUAGE_VERSION=202012", "-DSYCL2020_DISABLE_DEPRECATION_WARNINGS"]
    command += [HERE / "collectives.cpp", "-o", library, f"-L{PREFIX / 'lib'}"]
    command += ["-l:libccl.so.1", "-l:libsycl.so.9", "-Wl,--allow-shlib-undefined"]
    subprocess.run(command, check=True)
    return library


# oneCCL refuses host memory where the queue's device is a GPU.
@pytest.mark.parametrize("kind", ["device", "shared"])
@RANKS
def test_collectives_of_oneccl_by_its_cpp_api(run, cpp, kind, ranks, variables):
    output, errors = run(
        *(sys.executable, HERE / "collectives.py", kind, cpp),
        ranks=ranks,
        CCL_ROOT=str(PREFIX),
        # Nobody waits inside of oneCCL, which has no thread of its own on a machine with few processors.
        CCL_WORKER_OFFLOAD="1",
        **variables,
    )
    for rank in range(ranks):
        assert f"{rank}: {(6 + 3) * 4 * 4} compared\n" in output
    assert "CCL_ERROR" not in output + errors
