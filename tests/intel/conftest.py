"""Fixtures of the tests on the simulated GPU: programs in new interpreters, with faults injected by variables."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def program():
    """Runs a program with additional variables and returns its output. A failure includes the program's standard error. If
    `crashes`, it must die of SIGSEGV."""

    def run(code, *, crashes=False, **variables):
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=os.environ | variables,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        expected = -signal.SIGSEGV if crashes else 0
        assert result.returncode == expected, (
            f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        )
        return result.stdout

    return run
