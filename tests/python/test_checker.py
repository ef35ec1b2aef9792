"""`python -m zeusm check`: mistakes of Python programs are reported with their stacks, and correct programs have none."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import zeusm

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        zeusm.runtime().kind != "cpu", reason="the checker is a part of the CPU runtime"
    ),
]

IMPORTS = "import ctypes\nimport zeusm\nimport zeusm.memory as zm\nimport dpctl.memory\n"
FAULTY = {
    "host access": (
        "host-access",
        """
        memory = zm.MemoryUSMDevice(1000)
        def read():
            return ctypes.string_at(memory._pointer + 10, 4)
        read()
        """,
        {"memory": "device", "offset": 10, "size": 1000},
    ),
    "host access to an array of dpnp": (
        "host-access",
        """
        import dpnp
        array = dpnp.arange(100)
        array.sycl_queue.wait()
        def read():
            return ctypes.string_at(dpnp.get_usm_ndarray(array).usm_data._pointer, 4)
        read()
        """,
        {"memory": "device", "offset": 0},
    ),
    "out of bounds": (
        "out-of-bounds",
        """
        memory = zm.MemoryUSMShared(8192)
        def read():
            return ctypes.string_at(memory._pointer + 8192, 4)
        read()
        """,
        {"memory": "shared", "distance": 1},
    ),
    "use after free": (
        "use-after-free",
        """
        memory = zm.MemoryUSMHost(1000)
        pointer = memory._pointer
        def release():
            global memory
            del memory
        release()
        def read():
            return ctypes.string_at(pointer, 4)
        read()
        """,
        {"memory": "host", "offset": 0},
    ),
    "race": (
        "race",
        """
        queue = dpctl.SyclQueue(property="in_order")
        source = dpctl.memory.MemoryUSMDevice(1 << 20, queue=queue)
        memory = dpctl.memory.MemoryUSMShared(1 << 20, queue=queue)
        memory.memset(0)
        queue.memcpy_async(memory, source, 1 << 20)
        def read():
            return memoryview(memory)[4096]
        read()
        queue.wait()
        """,
        {"memory": "shared", "offset": 4096},
    ),
}

CORRECT = {
    "zeusm": """
        memory = zm.MemoryUSMDevice(1000)
        memory.memset(3)
        assert memory.tobytes() == bytes([3]) * 1000
        shared = zm.MemoryUSMShared(1000)
        shared.copy_from_device(memory)
        assert bytes(memoryview(shared)) == bytes([3]) * 1000
        array = zeusm.asarray([1.0, 2.0])
        assert array.copy_to_host().tolist() == [1.0, 2.0]
    """,
    "memory in place": """
        data = bytearray(20_000)
        memory = zm.MemoryUSMHost.from_host(memoryview(data)[100:5000])
        memory.memset(3)
        assert data[100] == 3
        device = zm.MemoryUSMDevice(20_000)
        device.copy_from_host(data)
        device.copy_to_host(data)
        del memory
        data.append(1)
    """,
    "dpnp": """
        import dpnp
        array = dpnp.arange(1000, dtype="f4")
        total = float((dpnp.sin(array) ** 2 + dpnp.cos(array) ** 2).sum())
        assert abs(total - 1000) < 1
        assert dpnp.asnumpy(dpnp.sort(-array))[0] == -999
    """,
}


@pytest.fixture
def check(fresh, tmp_path):
    """Runs a program under the checker; returns its standard error, and the findings."""

    def run(code, *options, faulty):
        report = tmp_path / "report.json"
        arguments = ["-m", "zeusm", "check", "--report", report, *options, sys.executable, "-c"]
        result = fresh.run(*arguments, IMPORTS + dedent(code), fails=faulty)
        if faulty:
            assert result.returncode == 86
        return result.stderr, json.loads(report.read_text())["findings"]

    return run


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_program_is_reported(check, name):
    kind, code, allocation = FAULTY[name]
    errors, findings = check(code, faulty=True)
    assert [finding["kind"] for finding in findings] == [kind]
    [finding] = findings
    assert f"zeusm check: {kind}: " in errors
    assert {key: finding["allocation"][key] for key in allocation} == allocation
    frames = finding["stack"]["python"]
    assert any(frame.endswith(" in read") for frame in frames), frames
    assert finding["allocation"]["allocated"]["python"]
    if kind == "use-after-free":
        freed = finding["allocation"]["freed"]["python"]
        assert any(frame.endswith(" in release") for frame in freed), freed
    if kind == "race":
        assert finding["related"][0]["stack"]["python"]


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_program_has_no_findings(check, name):
    errors, findings = check(CORRECT[name], faulty=False)
    assert findings == []
    assert "zeusm check" not in errors


def test_a_finding_can_be_suppressed(check, tmp_path):
    suppressions = tmp_path / "suppressions"
    suppressions.write_text("# Known.\nhost-access: in read\n")
    _, code, _ = FAULTY["host access"]
    assert check(code, "--suppressions", suppressions, faulty=False)[1] == []


def test_the_command_that_cannot_be_run_is_named(fresh):
    result = fresh.run("-m", "zeusm", "check", "no-such-program", fails=True)
    assert result.returncode == 127
    assert result.stderr == "zeusm check: no-such-program: No such file or directory\n"


#: A faulty program that needs no package, so that any interpreter runs it. It prints its own stack at the fault.
ALONE = r"""
import ctypes, sys, traceback
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p

ze = ctypes.CDLL(sys.argv[1])

class Description(ctypes.Structure):
    _fields_ = [("stype", c_int), ("next", c_void_p), ("flags", c_uint), ("ordinal", c_uint)]

def must(code):
    assert code == 0, hex(code)

def allocate():
    one, driver, device, context, memory = c_uint(1), c_void_p(), c_void_p(), c_void_p(), c_void_p()
    must(ze.zeInit(0))
    must(ze.zeDriverGet(byref(one), byref(driver)))
    must(ze.zeDeviceGet(driver, byref(one), byref(device)))
    must(ze.zeContextCreate(driver, byref(Description(0xD)), byref(context)))
    description = Description(0x15)
    must(
        ze.zeMemAllocDevice(
            context, byref(description), c_size_t(64), c_size_t(0), device, byref(memory)
        )
    )
    return memory.value

def généré(pointer):
    yield traceback.extract_stack(), ctypes.string_at(pointer, 4)

class Reader:
    def read(self, pointer):
        def inner(depth):
            # A call over several lines.
            return inner(depth - 1) if depth else next(
                généré(
                    pointer
                )
            )
        return inner(3)

[(stack, _)] = [(lambda: Reader().read(allocate()))()]
for frame in reversed(stack):
    print(f'File "{frame.filename}", line {frame.lineno} in {frame.name}')
"""


def test_only_lines_of_the_program_are_printed_unless_all_are_wanted(check):
    _, code, _ = FAULTY["host access"]
    errors, _ = check(code, faulty=True)
    lines = [line.removeprefix("zeusm check: ").strip() for line in errors.splitlines()]
    inside = 'File "<string>", line'
    assert [line for line in lines if not line.startswith(inside)] == [
        "host-access: the host reads device memory",
        next(line for line in lines if "is 10 bytes inside of allocation" in line),
        "at:",
        "allocated at:",
        "findings: 1",
    ]
    errors, _ = check(code, "--frames", faulty=True)
    assert "in string_at" in errors
    assert "(libc.so.6)" in errors


@pytest.mark.parametrize("kind", ["zm", "dpctl.memory"])
def test_the_variable_alone_disables_the_pools(fresh, kind):
    code = f"""
        import ctypes, dpctl.memory, zeusm.memory as zm
        memory = [{kind}.MemoryUSMDevice(1000) for _ in range(2)][1]
        ctypes.string_at(memory._pointer, 4)
    """
    errors = fresh(code, env={"ZEUSM_CHECK": "1"}, fails=True).stderr
    assert "0 bytes inside of allocation" in errors
    assert "(device memory, 1000 bytes at" in errors


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_frames_of_each_version_of_python_are_read(tmp_path, version):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version}")
    program, report = tmp_path / "prögram.py", tmp_path / "report.json"
    program.write_text(ALONE, encoding="utf-8")
    environment = dict(os.environ, ZEUSM_CHECK="1", ZEUSM_CHECK_REPORT=str(report), PYTHONUTF8="1")
    command = [python, program, zeusm.runtime().path]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 86, result.stderr
    [finding] = json.loads(report.read_text())["findings"]
    reader, *frames = finding["stack"]["python"]
    assert reader.endswith(" in string_at")
    assert frames == result.stdout.splitlines()
    allocated = finding["allocation"]["allocated"]["python"]
    assert allocated[0].endswith(" in allocate")


@pytest.mark.parametrize(
    ("folders", "depth", "kept"),
    [(30, 20, None), (1, 99, None), (1, 100, range(100, 101)), (30, 60, range(28, 38))],
)
def test_long_stacks_say_that_they_are_cut(check, folders, depth, kept):
    """`kept`: how many frames there may be, and None if all."""
    code = f"""
    memory = zm.MemoryUSMDevice(1000)
    source = "f = lambda depth: f(depth - 1) if depth else ctypes.string_at(memory._pointer, 4)"
    exec(compile(source, "/folder" * {folders}, "exec"))
    f({depth - 2})
    """
    [finding] = check(code, faulty=True)[1]
    first, *frames = finding["stack"]["python"]
    assert first.endswith(" in string_at")
    last = frames.pop()
    if kept is None:
        assert len(frames) == depth - 1
        assert last.endswith(" in <module>")
    else:
        assert len(frames) + 1 in kept
        assert last == "... and frames further out"
    assert all(frame.startswith('File "/folder') for frame in frames)


def test_the_child_of_a_fork_has_its_own_lines(fresh):
    code = """
        import ctypes, os, zeusm.memory as zm
        memory = zm.MemoryUSMDevice(1000)
        def touch(memory):
            ctypes.string_at(memory._pointer, 4)
        def in_child():
            touch(zm.MemoryUSMDevice(1000))
        def in_parent():
            touch(memory)
        if os.fork() == 0:
            in_child()
        else:
            os.wait()
            in_parent()
    """
    errors = fresh(code, env={"ZEUSM_CHECK": "1"}, fails=True).stderr
    _, child, parent = errors.split("host-access: ")
    assert " in in_child" in child
    assert " in in_parent" not in child
    assert " in in_parent" in parent
    assert " in in_child" not in parent


def test_a_program_that_closes_all_files_keeps_its_own(fresh, tmp_path):
    code = """
        import ctypes, os, sys, zeusm.memory as zm
        memory = zm.MemoryUSMDevice(1000)
        os.closerange(3, 100)
        files = [open(f"{sys.argv[1]}/{index}", "wb", buffering=0) for index in range(60)]
        ctypes.string_at(memory._pointer, 4)
        del memory
        assert all(file.tell() == 0 for file in files)
    """
    errors = fresh(code, tmp_path, env={"ZEUSM_CHECK": "1"}, fails=True).stderr
    assert "host-access: " in errors
    assert "AssertionError" not in errors
    assert not any(path.stat().st_size for path in tmp_path.iterdir())


def interpreter(version):
    """The path of an interpreter of this version, if there is one that runs."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    installed = Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python3")
    for found in filter(None, [*installed, shutil.which(f"python{version}")]):
        # A shim of pyenv is found, and may have nothing to run.
        if subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    return None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--suppressions", "/nosuch"], "/nosuch: No such file or directory"),
        (["--exit-code", "abc"], "invalid status value: 'abc'"),
        (["--exit-code", "300"], "300 is no exit status"),
        (["--exit-code=-1"], "-1 is no exit status"),
    ],
)
def test_wrong_options(options, message):
    command = [sys.executable, "-m", "zeusm", "check", *options, "true"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 2
    assert message in run.stderr


#: Two functions that access the same memory wrongly.
HIDDEN = {
    "host": "memory = zm.MemoryUSMDevice(1 << 20); at = memory._pointer",
    "guard": "memory = zm.MemoryUSMHost(4096); at = memory._pointer + 4096",
    "freed": "memory = zm.MemoryUSMHost(1 << 20); at = memory._pointer; memory.close()",
}


@pytest.mark.parametrize("size", [1, 4, 64, 4000])
@pytest.mark.parametrize("name", HIDDEN)
def test_a_finding_does_not_hide_the_next_one(check, tmp_path, name, size):
    suppressions = tmp_path / "suppressions"
    suppressions.write_text("*: in known_library\n")
    code = f"""
    {HIDDEN[name]}
    def known_library():
        ctypes.string_at(at, {size})
    def bug():
        ctypes.memset(at + 8, 1, {size})
    known_library()
    bug()
    """
    [finding] = check(code, "--suppressions", suppressions, faulty=True)[1]
    frames = finding["stack"]["python"]
    assert any(frame.endswith(" in bug") for frame in frames), frames
    assert "writes" in finding["message"]
