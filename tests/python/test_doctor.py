"""`zeusm doctor` on this machine, and on machines that are simulated by folders and programs."""

import contextlib
import errno
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import zeusm
from doctor_machines import GPU, machine
from zeusm._doctor import (
    Finding,
    Machine,
    State,
    examine,
    gpu,
    libraries,
    limits,
    linker,
    mpi,
    sycl,
    variables,
)

pytestmark = pytest.mark.once


def doctor(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "zeusm", "doctor", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | variables,
        check=False,
    )


def test_this_machine():
    pytest.importorskip("dpctl")
    run = doctor("--json")
    assert run.returncode == 0, run.stdout + run.stderr
    findings = json.loads(run.stdout)
    states = {finding["step"]: finding["state"] for finding in findings}
    for step in ("zeusm's runtime", "device", "kernel compiler", "SYCL", "kernels"):
        assert states[step] == "ok", findings
    kernel = next(finding for finding in findings if finding["step"] == "kernels")
    assert kernel["text"].endswith(": 499500")


@pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="the CPU runtime's cache")
def test_what_is_kept_of_built_modules(tmp_path):
    cache, file = tmp_path / "cache", tmp_path / "file"
    file.touch()

    def told(**variables):
        (found,) = sycl.find_cache(Machine(environment=os.environ | variables))
        return found.state, found.text

    empty = State.OK, f"{cache}: 0 modules, 0 of 512 MiB"
    assert told(ZEUSM_CACHE_DIR=str(cache)) == empty
    # The step that builds a kernel neither reads nor keeps one.
    list(sycl.find_compiler(Machine(environment=os.environ | {"ZEUSM_CACHE_DIR": str(cache)})))
    assert told(ZEUSM_CACHE_DIR=str(cache)) == empty
    (cache / "0000000000000001.zeusm").write_bytes(bytes(3 << 20))
    full = State.OK, f"{cache}: 1 modules, 3 of 7 MiB"
    assert told(ZEUSM_CACHE_DIR=str(cache), ZEUSM_CACHE_SIZE="7") == full
    assert told(ZEUSM_CACHE_SIZE="0") == (State.NOTE, "none: it is off")
    state, text = told(ZEUSM_CACHE_DIR=str(file))
    assert state is State.NOTE
    assert text.startswith(f"none: {file}: ")
    # No file may have a byte, as on a full file system.
    program = "import os; from zeusm._doctor import sycl, machine; print(*sycl.find_cache(machine.Machine(environment=os.environ)))"
    limited = ["sh", "-c", 'ulimit -f 0; exec "$0" -c "$1"', sys.executable, program]
    environment = os.environ | {"ZEUSM_CACHE_DIR": str(cache)}
    run = subprocess.run(limited, env=environment, capture_output=True, text=True, check=True)
    assert "1 modules, 3 of 512 MiB; no more is kept: File too large" in run.stdout
    assert "NOTE" in run.stdout
    assert [path.name for path in cache.iterdir()] == ["0000000000000001.zeusm"]


def test_a_wrong_variable_is_named_with_its_remedy():
    run = doctor(ONEAPI_DEVICE_SELECTOR="opencl:gpu")
    assert run.returncode == 1
    lines = run.stdout.splitlines()
    sycl = next(index for index, line in enumerate(lines) if line.startswith("WRONG SYCL"))
    assert "no device" in lines[sycl]
    assert lines[sycl + 1].strip() == "-> unset ONEAPI_DEVICE_SELECTOR"


def bind(tmp_path, driver):
    """Bind the GPU to a kernel driver."""
    target = tmp_path / "sys/bus/pci/drivers" / driver
    target.mkdir(parents=True)
    (tmp_path / GPU / "driver").symlink_to(target)


def make_node(tmp_path):
    """Have the kernel's driver make a render node of the GPU."""
    node = tmp_path / GPU / "drm/renderD128"
    node.mkdir(parents=True)
    (node / "device").symlink_to(tmp_path / GPU)
    drm = tmp_path / "sys/class/drm"
    drm.mkdir(parents=True)
    (drm / node.name).symlink_to(node)


def last(findings):
    *_, found = findings
    return found


def test_no_gpu(tmp_path):
    (found,) = gpu.find(Machine(tmp_path, {}))
    assert found.state is State.ABSENT


def test_a_gpu_of_another_vendor_and_another_device_of_intel_do_not_count(tmp_path):
    other = machine(tmp_path, **{f"{GPU}/vendor": "0x10de"})
    assert last(gpu.find(other)).state is State.ABSENT
    network = machine(tmp_path, **{f"{GPU}/class": "0x020000"})
    assert last(gpu.find(network)).state is State.ABSENT


def test_a_gpu_without_a_driver(tmp_path):
    found = last(gpu.find(machine(tmp_path)))
    assert (found.state, found.remedy) == (State.WRONG, "sudo modprobe --all i915 xe")


def test_a_gpu_for_a_virtual_machine(tmp_path):
    one = machine(tmp_path)
    bind(tmp_path, "vfio-pci")
    found = last(gpu.find(one))
    assert found.state is State.WRONG
    assert "vfio-pci/unbind" in found.remedy


def test_a_gpu_without_a_node_in_the_container(tmp_path):
    one = machine(tmp_path)
    bind(tmp_path, "xe")
    assert "dmesg" in last(gpu.find(one)).remedy
    make_node(tmp_path)
    found = last(gpu.find(one))
    assert "renderD128: No such file" in found.text
    assert found.remedy.startswith("docker run --device /dev/dri")


def test_a_node_that_this_user_cannot_open(tmp_path):
    node = tmp_path / "renderD128"
    node.touch()
    assert gpu.remedy(node, errno.EACCES).startswith(
        f"sudo usermod --append --groups {gpu.group_of(node)}"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_folder_of_nodes_that_this_user_cannot_search(fresh):
    code = """
        import os, sys
        from pathlib import Path
        from zeusm._doctor import Machine, gpu

        os.setuid(65534)
        *_, found = gpu.find(Machine(Path(sys.argv[1])))
        print(found.state, found.text, found.remedy, sep="\\n")
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        machine(root, **{"dev/dri/renderD128": ""})
        bind(root, "xe")
        make_node(root)
        folder = root / "dev/dri"
        folder.chmod(0o700)
        lines = fresh(code, name).stdout.splitlines()
        assert lines == ["wrong", f"{folder}: Permission denied", f"sudo chmod a+x {folder}"]


def test_a_step_that_fails_does_not_end_the_doctor(monkeypatch):
    def failing(machine):
        yield Finding("first", State.OK, "")
        raise OSError(errno.EIO, "text")

    def following(machine):
        yield Finding("second", State.OK, "")

    monkeypatch.setattr("zeusm._doctor.STEPS", [failing, following])
    first, failed, second = examine(Machine())
    assert (first.step, failed.state, second.step) == ("first", State.WRONG, "second")
    assert "[Errno 5] text" in failed.text


def test_a_user_without_a_name(tmp_path, monkeypatch):
    """As in a container that runs as another user than its image has."""
    for name in "LOGNAME", "USER", "LNAME", "USERNAME":
        monkeypatch.delenv(name, raising=False)

    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    node = tmp_path / "renderD128"
    node.touch()
    assert f" {os.getuid()} " in gpu.remedy(node, errno.EACCES)


def test_a_gpu_that_works(tmp_path):
    one = machine(tmp_path, **{"dev/dri/renderD128": ""})
    bind(tmp_path, "xe")
    make_node(tmp_path)
    found = list(gpu.find(one))
    assert [it.state for it in found] == [State.OK] * 3
    assert found[-1].text.endswith("/dev/dri/renderD128")


@pytest.mark.parametrize(
    ("drivers", "mask", "is_noted"),
    [
        ("xe", None, False),
        ("xe xe", None, True),
        ("xe xe", "", True),
        ("xe xe", "0,1", True),
        ("xe xe", "1", False),
        ("xe xe", "0.0,0.1", False),
        ("xe i915", None, False),
    ],
)
def test_host_memory_that_several_gpus_may_cost(tmp_path, drivers, mask, is_noted):
    environment = {} if mask is None else {"ZE_AFFINITY_MASK": mask}
    several = machine(tmp_path, environment)
    for index, name in enumerate(drivers.split()):
        device = tmp_path / f"sys/bus/pci/devices/0000:0{index + 3}:00.0"
        for file, text in [("vendor", "0x8086"), ("class", "0x030000"), ("device", "0xe223")]:
            device.mkdir(parents=True, exist_ok=True)
            (device / file).write_text(text)
        driver = tmp_path / f"sys/bus/pci/drivers/{name}"
        driver.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(driver)
    notes = [found for found in gpu.find(several) if found.state is State.NOTE]
    assert [found.step for found in notes] == ["host memory"] * is_noted
    assert all(found.remedy.startswith("export ZE_AFFINITY_MASK=0") for found in notes)


def test_a_missing_driver_is_wrong_only_with_a_gpu(tmp_path):
    name = "libnothing.so.1"
    without = libraries.find(Machine(tmp_path), "driver", name, "the-package")
    assert without.state is State.ABSENT
    found = libraries.find(machine(tmp_path, dict(os.environ)), "driver", name, "the-package")
    assert (found.state, found.remedy) == (State.WRONG, "sudo apt install the-package")
    assert found.text.startswith(f"{name}: cannot open shared object file")


def test_wsl_has_a_node_for_gpus_of_any_vendor(tmp_path):
    """Without a driver the doctor names WSL, what is missing, and the command."""
    files = {
        f"{GPU}/vendor": "0x1414",
        "dev/dxg": "",
        "etc/os-release": "ID=ubuntu\nVERSION_ID=24.04",
    }
    one = machine(tmp_path, os.environ, **files)
    (found,) = gpu.find(one)
    assert (found.step, found.state) == ("WSL", State.OK)
    found = libraries.find(one, "driver", "libnothing.so.1", "libze-intel-gpu1")
    assert (found.state, found.remedy) == (State.WRONG, "sudo apt install libze-intel-gpu1")
    assert "WSL" in found.text


def test_wsls_node_that_cannot_be_opened(tmp_path):
    one = machine(tmp_path, **{f"{GPU}/vendor": "0x1414", "dev/dxg/a": ""})
    (found,) = gpu.find(one)
    assert (found.step, found.state) == ("WSL", State.WRONG)
    assert found.remedy.startswith("wsl --update")


def test_a_driver_without_its_dependency(tmp_path):
    needed, driver = tmp_path / "libneeded.so.1", tmp_path / "libdriver.so.1"
    subprocess.run(["cc", "-shared", "-xc", "/dev/null", "-o", needed], check=True)
    link = [
        "cc",
        "-shared",
        "-Wl,--no-as-needed",
        "-xc",
        "/dev/null",
        "-xnone",
        needed,
        "-o",
        driver,
    ]
    subprocess.run(link, check=True)
    needed.unlink()
    found = libraries.find(Machine(tmp_path), "driver", str(driver), "the-package")
    assert (found.state, found.remedy) == (State.WRONG, "sudo apt install --reinstall the-package")
    assert "libneeded.so.1: cannot open shared object file" in found.text


def test_the_limit_of_the_control_groups(tmp_path):
    here = {"proc/meminfo": f"MemTotal: {8 << 20} kB", "proc/self/cgroup": "0::/outer/inner"}
    (found,) = limits.find(machine(tmp_path, **here))
    assert (found.state, found.text) == (State.OK, "no control group limits memory")
    outer = {"sys/fs/cgroup/outer/memory.max": str(2 << 30)}
    (found,) = limits.find(machine(tmp_path, **here, **outer))
    assert found.state is State.NOTE
    assert found.text == "control groups limit memory and swap space to 2.0 GiB"


@pytest.mark.parametrize("option", ["-v", "-d"])
def test_limits_of_the_shell_are_named_with_the_command_that_ends_them(fresh, tmp_path, option):
    name = {"-v": "RLIMIT_AS", "-d": "RLIMIT_DATA"}[option]
    told = fresh(
        f"""
        import resource
        from pathlib import Path
        import zeusm
        from zeusm._doctor import Machine, limits
        resource.setrlimit(resource.{name}, (64 << 30, resource.RLIM_INFINITY))
        *_, found = limits.find(Machine(Path({str(tmp_path)!r}), {{}}))
        print(found.state.name, found.text, found.remedy, sep="|")
        """
    ).stdout
    assert re.fullmatch(rf"WRONG\|.* is limited to 64.0 GiB\|ulimit {option} unlimited\n", told), (
        told
    )


def test_variables_are_listed_with_their_effect(tmp_path):
    found = list(variables.find(Machine(tmp_path, {"ZE_AFFINITY_MASK": "1", "PATH": "/bin"})))
    assert [it.remedy for it in found] == ["unset ZE_AFFINITY_MASK"]
    assert found[0].text.startswith("ZE_AFFINITY_MASK=1: Level Zero shows only")


OFFLOADED = {"PMI_RANK": "1", "I_MPI_OFFLOAD": "1"}


@pytest.mark.parametrize(
    ("variables", "has_gpu", "expected"),
    [
        ({}, False, []),
        ({"I_MPI_OFFLOAD": "1"}, False, []),
        ({"OMPI_COMM_WORLD_RANK": "1"}, True, [State.NOTE]),
        ({"PMI_RANK": "1", "I_MPI_OFFLOAD": "0"}, False, [State.NOTE]),
        (OFFLOADED, False, [State.WRONG]),
        (OFFLOADED, True, [State.OK]),
        (OFFLOADED | {"LD_LIBRARY_PATH": f"/lib:{mpi.FOLDER}"}, False, [State.OK]),
    ],
)
def test_a_program_of_mpi_is_told_how_device_memory_is_accessed(
    tmp_path, variables, has_gpu, expected
):
    rank = (machine if has_gpu else Machine)(tmp_path, variables)
    assert [it.state for it in mpi.find(rank)] == expected


def test_the_runtime_is_where_the_doctor_looks_for_it():
    if zeusm.runtime().kind == "cpu" and "ZEUSM_CPU_LIBRARY" not in os.environ:
        assert str(zeusm.runtime().path.parent) == mpi.FOLDER


@pytest.mark.parametrize(
    ("program", "part"),
    [
        ("import os; os.abort()", "signal 6"),
        ("raise OSError('the last line')", "OSError: the last line"),
        ("raise SystemExit(3)", "exit status 3"),
        ("import os; os.write(2, b'not \\xff text'); raise SystemExit(1)", "not \ufffd text"),
    ],
)
def test_a_program_that_fails_is_quoted(program, part):
    found, error = sycl.ask(Machine(), program)
    assert found is None
    assert part in error


def test_a_runtime_that_cannot_be_used_is_wrong():
    broken = Machine(environment=os.environ | {"ZEUSM_RUNTIME": "/nowhere/libze_loader.so.1"})
    found = last(sycl.find_runtime(broken))
    assert found.state is State.WRONG
    assert "/nowhere/libze_loader.so.1" in found.text


class Failing(Machine):
    """A machine on which programs fail."""

    def __init__(self, error, environment=None, prefix=Path("/nowhere")):
        super().__init__(environment=environment or {}, prefix=prefix)
        object.__setattr__(self, "error", error)

    def run(self, program):
        return subprocess.CompletedProcess([], 1, "", f"{self.error}\n")


def prefix_with(folder, *libraries):
    """A Python environment with libraries."""
    (folder / "lib").mkdir(parents=True)
    for library in libraries:
        (folder / "lib" / library).touch()
    return folder


MISSING = "libintlc.so.5: cannot open shared object file: No such file or directory"


@pytest.mark.skipif(find_spec("dpnp") is None, reason="the steps look for dpctl and dpnp first")
def test_a_library_of_the_environment_that_is_not_found(tmp_path):
    """As in environments of numba-dpex."""
    prefix = prefix_with(tmp_path, "libintlc.so.5")
    error = f"ImportError: {MISSING}"
    (found,) = sycl.find_dpctl(Failing(error, prefix=prefix))
    assert (found.state, found.remedy) == (State.WRONG, f"export LD_LIBRARY_PATH={prefix}/lib")
    (found,) = sycl.find_dpctl(Failing(error, {"LD_LIBRARY_PATH": "/other"}, prefix))
    assert found.remedy == f"export LD_LIBRARY_PATH={prefix}/lib:$LD_LIBRARY_PATH"
    error = f"{sycl.OPENCL_FAILS}: {prefix}/lib/libintelocl.so: {MISSING}"
    (found,) = sycl.find_compiler(Failing(error, prefix=prefix))
    assert found.remedy == f"export LD_LIBRARY_PATH={prefix}/lib"


@pytest.mark.skipif(find_spec("dpnp") is None, reason="the steps look for dpctl and dpnp first")
def test_libraries_of_another_environment(tmp_path):
    prefix = prefix_with(tmp_path / "own", "libtbb.so.12")
    other = prefix_with(tmp_path / "other", "libtbb.so.12") / "lib"
    unrelated = prefix_with(tmp_path / "unrelated", "libfoo.so.1") / "lib"
    error = f"{sycl.OPENCL_FAILS}: {prefix}/lib/libintelocl.so: undefined symbol: f"
    for paths, remedy in {
        f"{other}": "unset LD_LIBRARY_PATH",
        f"{other}:{prefix}/lib": f"export LD_LIBRARY_PATH={prefix}/lib",
        f"{unrelated}": None,
        "": None,
    }.items():
        for step in sycl.find_compiler, sycl.find_kernels, sycl.find_dpctl:
            (found,) = step(Failing(error, {"LD_LIBRARY_PATH": paths}, prefix))
            assert (found.state, found.remedy) == (State.WRONG, remedy), (step, paths)


@pytest.mark.skipif(find_spec("dpctl") is None, reason="the step looks for dpctl first")
@pytest.mark.parametrize(
    ("devices", "text"),
    [([], "no device"), (["opencl:cpu:0"], "opencl:cpu:0, and no Level Zero device")],
)
def test_devices_that_sycl_does_not_show(devices, text):
    class Listing(Machine):
        def run(self, program):
            answer = json.dumps({"version": "0.22", "devices": devices})
            return subprocess.CompletedProcess([], 0, answer, "")

    (found,) = sycl.find_dpctl(Listing(environment={}))
    assert (found.state, found.text) == (State.WRONG, f"dpctl 0.22 shows {text}")


@pytest.mark.skipif(find_spec("dpctl") is None, reason="the step looks for dpctl first")
@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (f"ImportError: {MISSING}", "pip install --force-reinstall dpctl"),
        ("no answer within 60 seconds", None),
        ("LevelZeroError: zeInit", None),
    ],
)
def test_dpctl_is_installed_again_only_if_it_cannot_be_imported(tmp_path, error, remedy):
    (found,) = sycl.find_dpctl(Failing(error, prefix=tmp_path))
    assert (found.state, found.remedy) == (State.WRONG, remedy)


class OldDistribution(Machine):
    """A machine whose C++ library is older than the one that dpctl's wheels were built with."""

    def run(self, program):
        error = (
            "ImportError: libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by dpctl.so)"
        )
        return subprocess.CompletedProcess([], 1, "", f"Traceback:\n{error}\n")


def test_a_wrong_choice_of_the_opencl_runtime_is_named_with_its_remedy():
    """What is installed does not change what the variable names."""
    absent = "/absent/libOpenCL.so"
    (found,) = sycl.find_compiler(Machine(environment={"ZEUSM_OPENCL_LIBRARY": absent}))
    assert found.state is State.WRONG
    assert "OpenCL runtime" in found.text
    assert found.text.startswith("ZEUSM_OPENCL_LIBRARY names no OpenCL runtime")
    assert found.remedy == "unset ZEUSM_OPENCL_LIBRARY"


def test_a_wrong_choice_is_the_cause_of_a_kernel_that_fails():
    """SYCL's error has the line of the cause in its middle."""
    error = f"RuntimeError: no\nZEUSM_OPENCL_LIBRARY {sycl.WRONG_CHOICE}\nRuntimeError: -11"
    run = subprocess.CompletedProcess([], 1, "", error)
    assert sycl.cause(run) == f"ZEUSM_OPENCL_LIBRARY {sycl.WRONG_CHOICE}"


def test_names_that_are_longer_than_any_file(tmp_path):
    name = "n" * 300
    error = f"ImportError: {name}: cannot open shared object file, undefined symbol: f"
    machine = Failing(error, {"LD_LIBRARY_PATH": f"/{name}"}, tmp_path)
    assert linker.remedy(machine, error) is None


def test_a_missing_opencl_runtime_is_named_with_its_remedy(tmp_path):
    error = f"{sycl.NO_OPENCL}: tried libOpenCL.so.1: cannot open shared object file"
    (found,) = sycl.find_compiler(Failing(error, prefix=tmp_path))
    assert (found.state, found.remedy) == (State.ABSENT, sycl.OPENCL)


def opencl_library():
    """Intel's OpenCL runtime in this environment."""
    return Path(sys.prefix, "lib", "libintelocl.so")


#: The OpenCL runtime's files that it needs to be opened.
PARTS = ["libintelocl.so", "libcommon_clang.so*", "cl.cfg"]
PARTS += [f"lib{name}.so*" for name in ("tbb", "tbbmalloc", "imf", "svml", "irng", "irc", "intlc")]


@pytest.mark.skipif(not opencl_library().exists(), reason="needs Intel's OpenCL runtime")
@pytest.mark.skipif(find_spec("dpnp") is None, reason="the last step looks for dpnp first")
def test_an_opencl_runtime_at_a_path_with_a_space(tmp_path):
    """It reads its own path up to the space. Installing it again there would change nothing."""
    if zeusm.runtime().kind != "cpu":
        pytest.skip("a GPU needs no OpenCL runtime")
    if version("intel-opencl-rt").startswith("2024."):
        pytest.skip("the OpenCL runtime of 2024 consists of other files")
    folder = tmp_path / "with a space"
    folder.mkdir()
    for pattern in PARTS:
        for file in opencl_library().parent.glob(pattern):
            try:
                os.link(file.resolve(), folder / file.name)
            except OSError:  # Another file system.
                shutil.copy(file, folder)
    library = str(folder / "libintelocl.so")
    run = doctor("--json", ZEUSM_OPENCL_LIBRARY=library)
    findings = {finding["step"]: finding for finding in json.loads(run.stdout)}
    for step in "kernel compiler", "kernels":
        found = findings[step]
        told = f"the row of paths with a space in docs/limits.md is obsolete: {findings}"
        assert found["state"] == "wrong", told
        assert f"the OpenCL runtime for the CPU does not work: {library}: " in found["text"]
        assert "at a path with a space" in found["text"]
        assert found["remedy"] is None


def test_an_opencl_runtime_without_a_library_that_it_needs(tmp_path):
    error = "the OpenCL runtime for the CPU does not work: /env/lib/libintelocl.so: libimf.so: cannot open shared object file"
    remedy = sycl.opencl_remedy(Machine(environment={}, prefix=tmp_path), error)
    assert remedy == "pip install intel-opencl-rt intel-cmplr-lib-rt"


class OlderLibrary(Machine):
    """A machine whose C++ library lacks what dpctl's wheels need."""

    def run(self, program):
        assert program == sycl.NEW_LIBRARY
        return subprocess.CompletedProcess([], 0, "false\n", "")


def test_dpctl_is_not_suggested_where_it_cannot_work(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for step, package in (sycl.find_dpctl, "dpctl"), (sycl.find_kernels, "dpnp"):
        (here,) = step(Machine(python=(3, 11)))
        assert here.state is State.ABSENT
        assert here.remedy == f"pip install {package}"
        (old,) = step(OlderLibrary(python=(3, 11)))
        assert (old.state, old.remedy) == (State.ABSENT, None)
        assert f"{package} is not installed" in old.text
        assert "GLIBCXX_3.4.29" in old.text
        (new,) = step(Machine(python=(3, 15)))
        assert (new.state, new.remedy) == (State.ABSENT, None)
        assert "the last Python with wheels of it is 3.14" in new.text


def test_a_distribution_that_is_too_old_for_dpctl():
    """Installing dpctl again would change nothing."""
    old = OldDistribution()
    (found,) = sycl.find_dpctl(old)
    assert found.state is State.WRONG
    assert "GLIBCXX_3.4.29" in found.text
    assert "newer distribution" in found.text
    assert found.remedy is None
    (found,) = sycl.find_kernels(old)
    assert found.state is State.ABSENT


def on_a_terminal(columns, **variables):
    """What the doctor writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {"TERM": "xterm"} | variables
    kept = {name: os.environ[name] for name in os.environ if name not in ("NO_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "zeusm", "doctor"]
    with subprocess.Popen(command, stdout=theirs, env=kept | environment) as process:
        os.close(theirs)
        found = b""
        with contextlib.suppress(OSError):  # The end of a terminal is an error.
            while piece := os.read(ours, 1 << 16):
                found += piece
    os.close(ours)
    assert process.returncode in (0, 1), found  # 1 if it finds something wrong.
    return found.decode().replace("\r\n", "\n")


def test_a_terminal_has_colours_and_a_width():
    off = {"ZEUSM_CACHE_SIZE": "0"}  # Other tests add modules to the cache.
    plain = doctor(**off).stdout
    assert "\x1b" not in plain
    shown = on_a_terminal(60, **off)
    assert "\x1b[32mok    \x1b[0mdevice" in shown
    lines = re.sub(r"\x1b\[\d+m", "", shown).splitlines()
    assert any(len(line) > 60 for line in plain.splitlines())
    assert any(line.startswith(" " * 25) and not line.strip().startswith("->") for line in lines)
    # A word that is longer than the line stays in one piece, and so does a command.
    broken = [each for each in lines if len(each) > 60 and " " in each[25:] and "->" not in each]
    assert broken == []
    assert re.sub(r"\s+", " ", "".join(f"{line}\n" for line in lines)) == re.sub(r"\s+", " ", plain)


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminals_without_colours(variables):
    assert "\x1b" not in on_a_terminal(200, **variables)
