"""Ctrl-C during a command of `zeusm`."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.once


def children(process):
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(each) for each in path.read_text().split()]


def is_running(process):
    """Whether it has not ended; that of which no process has asked the exit status has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


#: Shells start programs in the background with the signal ignored.
HANDLED = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


def interrupt(program, *arguments):
    """Run a program whose work does not end, and interrupt it once it prints that it has begun."""
    command = [sys.executable, "-c", HANDLED + program, *arguments]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "begun\n"
        started = children(process.pid)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    return process.returncode, error, started


#: In the place of the work of a command, without an end.
ENDLESS = """
import sys, time
from unittest import mock
from zeusm.__main__ import main

def endless(*arguments):
    print("begun", flush=True)
    while True:  # A signal just before one sleep is handled after it.
        time.sleep(0.1)

with mock.patch(sys.argv[1], endless):
    main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("zeusm._commands.bench.peers", ["bench"]),
        ("zeusm._commands.doctor.examine", ["doctor"]),
        ("zeusm._commands.info.gather", ["info"]),
        ("zeusm._commands.memory.load", ["memory", "report", "history"]),
        ("zeusm._commands.memory.load", ["memory", "export", "history", "--to", "perfetto"]),
    ],
)
def test_a_command_ends_by_the_signal_with_one_line(place, command):
    status, error, _ = interrupt(ENDLESS, place, *command)
    assert (status, error) == (-signal.SIGINT, "zeusm: interrupted\n")


def test_the_doctors_children_end_with_it():
    code = """
        import threading
        from zeusm import _doctor
        from zeusm.__main__ import main

        def step(machine):
            threading.Timer(1, lambda: print("begun", flush=True)).start()
            machine.run("import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(600)")

        _doctor.STEPS[:] = [step]
        main(["doctor"])
    """
    status, error, started = interrupt(textwrap.dedent(code))
    assert (status, error) == (-signal.SIGINT, "zeusm: interrupted\n")
    (child,) = started
    until = time.monotonic() + 30
    while is_running(child):
        assert time.monotonic() < until
        time.sleep(0.01)
