"""The package on Windows, or in wine: its commands, paths and code pages, loaders, and what says that it is for Linux."""

import json
import locale
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import zeusm
import zeusm.memory as zm
from zeusm.__main__ import CONTROL_C_EXIT

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "win32", reason="it is about Windows"),
]

#: A name with a space, with letters of Windows' usual code page, and with others.
FOLDER = "Grüße aus Łódź"
LOADER = "ze_loader.dll"
PACKAGE = Path(zeusm.__file__).parent


def python(*arguments, is_utf8=False, **variables):
    """Run an interpreter. Its output is a pipe, whose encoding is by default that of Windows' code page."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        encoding="utf-8" if is_utf8 else locale.getencoding(),
        env={**os.environ, "PYTHONUTF8": str(int(is_utf8)), "PYTHONIOENCODING": "", **variables},
        timeout=250,
        check=False,
    )


def command(*arguments, **variables):
    """Run a command of zeusm, which has to end without a traceback."""
    run = python("-m", "zeusm", *arguments, **variables)
    assert "Traceback" not in run.stderr, run.stderr
    return run


def program(text, *arguments):
    """Run a program, and return what it prints."""
    run = python("-c", textwrap.dedent(text), *arguments, is_utf8=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def long(path):
    """Return the form of a path that may have more than 260 characters."""
    return Path(rf"\\?\{path}")


def test_the_doctor_goes_through_all_steps():
    run = command("doctor", "--json")
    found = json.loads(run.stdout)
    steps = {it["step"] for it in found}
    assert {"Windows", "GPU", "Level Zero loader", "zeusm's runtime", "SYCL's library"} <= steps
    assert not [it for it in found if "this step of the doctor failed" in it["text"]]
    text = " ".join(f"{it['text']} {it['remedy']}" for it in found)
    assert not [name for name in ("LD_LIBRARY_PATH", "/dev/dri", "sudo", ".so") if name in text]


@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["bench", "--rounds", "1"]])
def test_a_command_names_the_runtimes_device(arguments):
    run = command(*arguments)
    assert run.returncode == 0, run.stderr
    assert zeusm.runtime().device_names[0] in run.stdout


@pytest.mark.parametrize("name", ["run", "check"])
def test_a_command_for_linux_says_so(name):
    run = command(name, "python", "program.py")
    assert run.returncode == 1
    assert "for Linux" in run.stderr


@pytest.mark.skipif(sys.flags.no_site, reason="this interpreter reads no path files")
def test_an_environment_is_enabled_and_disabled():
    assert command("status").returncode == 1
    assert command("enable").returncode == 0
    try:
        assert command("status").returncode == 0
        assert program("import sys; print(type(sys.meta_path[0]).__module__)") == "zeusm_start"
    finally:
        assert command("disable").returncode == 0
    assert command("status").returncode == 1


def test_a_history_is_shown(tmp_path):
    history = tmp_path / f"{FOLDER}.json"
    with zm.record_history() as recording:
        zm.MemoryUSMShared(1000).close()
    recording.save(history)
    assert json.loads(history.read_text())["process"]["host"] == socket.gethostname()
    for action in ("summary", "report", "replay"):
        run = command("memory", action, str(history))
        assert run.returncode == 0, run.stderr
    assert history.with_suffix(".html").exists()


def test_ctrl_c_ends_a_command_as_windows_ends_programs():
    run = python(
        "-c",
        textwrap.dedent("""
            import sys
            from unittest import mock
            from zeusm.__main__ import main
            with mock.patch("zeusm._commands.info.gather", side_effect=KeyboardInterrupt):
                sys.exit(main(["info"]))
        """),
    )
    assert run.returncode == CONTROL_C_EXIT + (1 << 32)
    assert run.stderr == "zeusm: interrupted\n"


@pytest.mark.parametrize("depth", [0, 20], ids=["short", "long"])
def test_a_runtime_at_a_path_with_spaces_and_other_letters(tmp_path, depth):
    folder = Path(tmp_path, FOLDER, *["long folder"] * depth)
    long(folder).mkdir(parents=True)
    library = folder / LOADER
    assert (len(str(library)) > 260) == (depth > 0)
    shutil.copy(PACKAGE / "lib" / LOADER, long(library))
    run = command("info", "--json", ZEUSM_RUNTIME=str(library))
    assert run.returncode == 0, run.stderr
    runtime = json.loads(run.stdout)["runtime"]
    assert (runtime["kind"], runtime["reason"]) == ("custom", "it was chosen")
    assert runtime["path"].removeprefix("\\\\?\\") == str(library)


def test_the_package_in_a_folder_with_spaces_and_other_letters(tmp_path):
    copy = tmp_path / FOLDER / "zeusm"
    shutil.copytree(PACKAGE, copy)
    text = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import zeusm
        memory = zeusm.memory.MemoryUSMShared(8)
        memory[:] = 7
        print(zeusm.runtime().path, bytes(memory) == bytes([7] * 8))
    """
    found = program(text, str(copy.parent))
    assert found == f"{copy / 'lib' / LOADER} True"


@pytest.mark.parametrize("name", ["info", "doctor"])
def test_a_character_that_the_output_lacks_is_escaped(tmp_path, name):
    """As in a pipe, whose encoding is the code page."""
    absent = tmp_path / "日本" / LOADER
    run = command(name, ZEUSM_RUNTIME=str(absent))
    assert run.returncode == 1
    assert r"\u65e5\u672c\ze_loader.dll" in run.stdout + run.stderr
    assert "UnicodeEncodeError" not in run.stderr


def test_without_a_driver_the_reason_names_the_systems_folder():
    if Path(os.environ["SYSTEMROOT"], "System32", LOADER).exists():
        pytest.skip("there is a driver")
    assert zeusm.runtime().kind == "cpu"
    assert r"\system32\ze_loader.dll" in zeusm.runtime().reason.lower()
    run = command("info", ZEUSM_RUNTIME="system")
    assert run.returncode == 1
    assert "Intel's graphics driver installs" in run.stderr


def test_a_folder_for_libraries_has_no_loader_for_zeusm(tmp_path):
    """`os.add_dll_directory` is for libraries that others need. One that is in the process by the loader's name serves."""
    shutil.copy(PACKAGE / "lib" / LOADER, tmp_path)
    begin = "import ctypes, os, sys; os.add_dll_directory(sys.argv[1])"
    end = "import zeusm; print(zeusm.runtime().path, zeusm.runtime().reason, sep='|')"
    path, reason = program(f"{begin}; {end}", str(tmp_path)).split("|")
    assert path == str(PACKAGE / "lib" / LOADER)
    assert "system32" in reason
    path, reason = program(f"{begin}; ctypes.CDLL('ze_loader.dll'); {end}", str(tmp_path)).split(
        "|"
    )
    assert path == str(tmp_path / LOADER)
    assert reason == "it was already loaded"


def test_a_library_of_another_architecture_is_named(tmp_path):
    library = tmp_path / LOADER
    library.write_bytes(b"MZ" + bytes(1000))
    run = command("info", ZEUSM_RUNTIME=str(library))
    assert run.returncode == 1
    assert f"{library} (" in run.stderr
    assert "os error 193" in run.stderr  # ERROR_BAD_EXE_FORMAT


def test_what_is_for_linux_says_so():
    assert zm.IPCMemoryHandle.is_available() is False
    assert zeusm.IPCEventHandle.is_available() is False
    memory = zm.MemoryUSMDevice(64)
    with pytest.raises(zm.IPCError, match="on Linux only"):
        memory.ipc_handle()
    with pytest.raises(zm.IPCError, match="on Linux only"):
        zm.IPCMemoryHandle(memory)
    with pytest.raises(zm.IPCError, match="on Linux only"):
        zm.IPCMemoryHandle.from_bytes(bytes(192))
    with pytest.raises(zm.IPCError, match="on Linux only"):
        memory.memset_async(1).ipc_handle()
    with pytest.raises(zm.IPCError, match="on Linux only"):
        zeusm.IPCEventHandle.from_bytes(bytes(192))
    with pytest.raises(zeusm.LevelZeroError, match="PyTorch's allocator"):
        zeusm._zeusm._torch_pools([zm.MemoryPool("device")])
    run = python("-c", "import zeusm", ZEUSM_CHECK="1", ZEUSM_RUNTIME="cpu")
    assert "the checker is for Linux only" in run.stderr


def test_a_loader_that_cannot_be_used_is_a_warning(tmp_path):
    """A library without Level Zero's functions, as an old driver has not all."""
    library = tmp_path / LOADER
    shutil.copy(Path(os.environ["SYSTEMROOT"], "System32", "version.dll"), library)
    text = """
        import ctypes, sys, warnings
        ctypes.CDLL(sys.argv[1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import zeusm
        print(zeusm.runtime().kind, caught[0].message)
    """
    found = program(text, str(library))
    assert found.startswith("cpu the Level Zero loader cannot be used")
    assert "has no function zeInit: the library is too old" in found
    assert "import zeusm before dpctl" in found
