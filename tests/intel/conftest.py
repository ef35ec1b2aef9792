"""What the tests on the simulated GPU share: programs in new interpreters, with faults by variables."""

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def program():
    """Runs a program with more variables; gives its output. What it says on standard error is in the failure."""

    def run(code, **variables):
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=os.environ | variables,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return run
