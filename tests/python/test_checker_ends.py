"""How a program ends under `zeusm check`, and where the report and the suppressions are."""

import json
import os
import signal
import stat
import subprocess
import sys
from textwrap import dedent

import pytest
import zeusm

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        zeusm.runtime().kind != "cpu", reason="the checker is a part of the CPU runtime"
    ),
]

#: A program with one finding.
FAULTY = """
import ctypes, os, signal, sys, threading, time
import zeusm.memory as zm

memory = zm.MemoryUSMDevice(1000)
ctypes.string_at(memory._pointer, 4)
"""
TIMEOUT = 120


def start(code, *options, first="", **streams):
    """Starts the faulty program, with code before and after it."""
    command = [sys.executable, "-m", "zeusm", "check", *map(str, options), sys.executable, "-c"]
    code = first + FAULTY + dedent(code)
    return subprocess.Popen([*command, code], stderr=subprocess.PIPE, text=True, **streams)


def finish(process):
    """Waits for a process, which ends even if it hangs; returns its output and errors."""
    with process:
        try:
            return process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()


#: A program that exits while a thread of it reads in a stream.
READER = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
stdin = ctypes.c_void_p.in_dll(libc, "stdin")
line = ctypes.create_string_buffer(100)
threading.Thread(target=libc.fgets, args=(line, 100, stdin), daemon=True).start()
time.sleep(0.5)
"""


def exits_wait_for_streams():
    """Whether the C library's exit waits for a thread that reads in a stream, as that of glibc 2.43 does and of 2.36 does not."""
    plain = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE)
    try:
        plain.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return True
    finally:
        plain.communicate(timeout=TIMEOUT)  # Closes the stream, so that the thread's read ends.
    return False


def test_an_exit_waits_for_streams_as_without_the_checker(tmp_path):
    written = tmp_path / "written"
    code = f"""
        libc.fopen.restype = ctypes.c_void_p
        written = ctypes.c_void_p(libc.fopen({str(written)!r}.encode(), b"w"))
        libc.fputs(b"not flushed", written)
    """
    get, put = os.pipe()
    with os.fdopen(get), os.fdopen(put, "w") as stream:
        process = start(code, first=READER, stdin=get)
        if exits_wait_for_streams():
            stream.close()
        errors = finish(process)[1]
    assert process.returncode == 86, errors
    assert written.read_text() == "not flushed"


@pytest.mark.parametrize("closed", [[2], [0, 2], [0, 1, 2]], ids=str)
def test_a_report_is_not_written_into_the_first_file_of_a_program(tmp_path, closed):
    written = tmp_path / "written"
    first = f"file = open({str(written)!r}, 'wb', buffering=0)"
    code = "file.write(b'end of the program')"
    # A shell that closes the streams.
    shell = 'exec "$@" ' + " ".join(f"{number}>&-" for number in closed)
    program = [sys.executable, "-c", f"{first}\n{FAULTY}\n{code}"]
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "zeusm", "check", *program]
    result = subprocess.run(command, timeout=TIMEOUT, check=False)
    assert result.returncode == 86
    assert written.read_text() == "end of the program"


#: What a program does about `SIGSEGV`: the exit status, the output and the dumps after two of them were sent to it.
SENT = {
    "nothing": ("", -signal.SIGSEGV, "", 0),
    "ignored": ("signal.signal(signal.SIGSEGV, signal.SIG_IGN)", 86, "survived", 0),
    "handled": ("signal.signal(signal.SIGSEGV, lambda *_: print('handled'))", 86, "handled", 0),
    "faulthandler": ("import faulthandler; faulthandler.enable()", -signal.SIGSEGV, "", 1),
}


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("is_early", [True, False], ids=["before Level Zero", "after it"])
def test_a_signal_that_is_sent_is_not_lost(name, is_early):
    action, status, output, dumps = SENT[name]
    kill = """
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGSEGV)
            print("survived", flush=True)
    """
    if is_early:
        process = start(kill, first=f"import signal\n{action}", stdout=subprocess.PIPE)
    else:
        # The next allocation installs the checker's handler over the program's.
        code = f"{action}\nzm.MemoryUSMDevice(1000)\n{dedent(kill)}"
        process = start(code, stdout=subprocess.PIPE)
    printed, errors = finish(process)
    assert process.returncode == status, errors
    assert output in printed
    assert ("survived" in printed) == (status == 86)
    assert errors.count("Fatal Python error") == dumps


@pytest.mark.parametrize("is_early", [True, False], ids=["before Level Zero", "after it"])
def test_a_fault_elsewhere_ends_the_program_with_one_dump(is_early):
    enable = "import faulthandler; faulthandler.enable()"
    code = "zm.MemoryUSMDevice(1000)\nctypes.string_at(8, 4)"
    process = start(code, first=enable) if is_early else start(f"{enable}\n{code}")
    errors = finish(process)[1]
    assert process.returncode == -signal.SIGSEGV
    assert errors.count("Fatal Python error") == 1, errors


@pytest.mark.parametrize(
    "between", ["", "zm.MemoryUSMDevice(2000)"], ids=["nothing", "an allocation"]
)
def test_a_new_handler_comes_first_until_the_next_allocation(between):
    process = start(f"""
        memory = zm.MemoryUSMDevice(1000)
        import faulthandler
        faulthandler.enable()
        {between}
        ctypes.string_at(memory._pointer, 1)
    """)
    errors = finish(process)[1]
    assert process.returncode == (86 if between else -signal.SIGSEGV)
    assert errors.count("host-access:") == (2 if between else 1)


def test_a_report_into_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    process = start("", "--report", pipe)
    _, errors = finish(process)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    [finding] = json.loads(os.read(reader, 1 << 16))["findings"]
    assert finding["kind"] == "host-access"
    os.close(reader)
    # Nothing reads the pipe, and the program does not wait for a reader.
    process = start("", "--report", pipe)
    _, errors = finish(process)
    assert process.returncode == 86
    assert f"the report cannot be written to {pipe}" in errors


def test_a_report_into_a_device(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        device.write_bytes(b"")
    except PermissionError:
        pytest.skip("devices cannot be made or opened here")
    process = start("", "--report", device)
    _, errors = finish(process)
    assert stat.S_ISCHR(device.lstat().st_mode)
    assert "cannot be written" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_report_into_a_link(tmp_path, exists):
    folder = tmp_path / "folder"
    folder.mkdir()
    target, first, second = folder / "report", folder / "first", tmp_path / "second"
    first.symlink_to("report")
    second.symlink_to(first)
    if exists:
        target.write_text("")
    finish(start("", "--report", second))
    assert second.is_symlink()
    assert first.is_symlink()
    assert len(json.loads(target.read_text())["findings"]) == 1
    assert len(list(tmp_path.rglob("*"))) == 4


def test_paths_that_are_no_text(tmp_path):
    folder = os.fsencode(tmp_path)
    suppressions = folder + b"/suppressions-\xff"
    with open(suppressions, "w") as file:
        file.write("\ufeffhost-access:string_at # known\nrace\nraces:text\n")
    report = folder + b"/report-%p-\xff"
    process = start(
        "", "--report", os.fsdecode(report), "--suppressions", os.fsdecode(suppressions)
    )
    _, errors = finish(process)
    assert process.returncode == 0, errors
    assert ":2: kind:text is expected, not race\n" in errors
    assert ":3: races is no kind of finding\n" in errors
    with open(report.replace(b"%p", b"%d" % process.pid)) as file:
        assert json.load(file)["suppressed"] == 1


@pytest.mark.parametrize("is_handled", [False, True])
def test_traps_of_the_program_are_its_own(is_handled):
    code = """
        os.kill(os.getpid(), signal.SIGTRAP)
        ctypes.memset(memory._pointer, 1, 4)
        os.kill(os.getpid(), signal.SIGTRAP)
    """
    first = "import signal; signal.signal(signal.SIGTRAP, lambda *_: print('trap'))"
    process = start(code, first=first if is_handled else "", stdout=subprocess.PIPE)
    printed, errors = finish(process)
    assert process.returncode == (86 if is_handled else -signal.SIGTRAP), errors
    assert printed == ("trap\ntrap\n" if is_handled else "")


def test_threads_and_signals_beside_findings():
    code = """
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        large = zm.MemoryUSMDevice(1 << 24)

        def access(at):
            for _ in range(20):
                ctypes.string_at(at, 1 << 20)
                ctypes.memset(at, 1, 100)

        threads = [
            threading.Thread(target=access, args=(large._pointer + index * 4096,)) for index in range(4)
        ]
        for thread in threads:
            thread.start()
        for _ in range(100):
            large.memset(3)
            time.sleep(0.001)
        for thread in threads:
            thread.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        large.memset(3)
        assert large.tobytes() == bytes([3]) * (1 << 24)
        print("end", flush=True)
    """
    process = start(code, stdout=subprocess.PIPE)
    printed, errors = finish(process)
    assert (process.returncode, printed) == (86, "end\n"), errors
