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

pytestmark = pytest.mark.skipif(
    zeusm.runtime().kind != "cpu", reason="the checker is a part of the CPU runtime"
)

#: A program with one finding.
FAULTY = """
import ctypes, os, signal, sys, threading, time
import zeusm.memory as zm

memory = zm.MemoryUSMDevice(1000)
ctypes.string_at(memory._pointer, 4)
"""
TIMEOUT = 120


def start(code, *options, **streams):
    command = [sys.executable, "-m", "zeusm", "check", *map(str, options), sys.executable, "-c"]
    code = FAULTY + dedent(code)
    return subprocess.Popen([*command, code], stderr=subprocess.PIPE, text=True, **streams)


def finish(process):
    """Waits for a process, which ends even if it hangs; returns its output and errors."""
    try:
        return process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()


def test_an_exit_does_not_wait_for_threads_in_streams(tmp_path):
    code = """
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        written = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
        libc.fputs(b"not flushed", written)
        stdin = ctypes.c_void_p.in_dll(libc, "stdin")
        line = ctypes.create_string_buffer(100)
        threading.Thread(target=libc.fgets, args=(line, 100, stdin), daemon=True).start()
        time.sleep(0.5)
    """
    written = tmp_path / "written"
    get, put = os.pipe()
    code = code.replace("sys.argv[1]", repr(str(written)))
    process = start(code, stdin=get)
    errors = finish(process)[1]
    os.close(get)
    os.close(put)
    assert process.returncode == 86, errors
    assert written.read_text() == "not flushed"
