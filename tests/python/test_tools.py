"""The Makefile's targets for releases, with stand-ins for the programs that they run."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def program(folder, name, script):
    """Put a shell script that stands in for a program into a folder."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def make(*arguments, path="/usr/bin:/bin"):
    """Run make with only the programs in `path`."""
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env={"PATH": path, "HOME": os.environ.get("HOME", "/"), "PYTHON": "python3"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_audit_looks_at_every_crate(tmp_path):
    """Without --workspace cargo-deny takes the root package only, and the Python module is not below it."""
    program(tmp_path, "cargo", 'echo "cargo $*"')
    program(tmp_path, "cargo-deny", "")
    run = make("-s", "audit", path=f"{tmp_path}:/usr/bin:/bin")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("cargo deny --workspace --locked check ")


@pytest.mark.skipif(shutil.which("cargo-deny", path="/usr/bin:/bin") is not None, reason="is there")
def test_the_audit_names_what_is_missing():
    run = make("audit")
    assert run.returncode != 0
    assert "cargo install --locked cargo-deny" in run.stderr
