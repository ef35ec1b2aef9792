"""The commands in folders that have modules of the names of others, and in one that was removed."""

import json
import os
import subprocess
import sys
import tempfile

import pytest
from zeusm._doctor import Machine, State
from zeusm._doctor.folder import find

pytestmark = pytest.mark.once

NAMES = ["argparse", "json", "logging", "numpy", "random", "typing"]


@pytest.fixture
def shadowed(tmp_path):
    """A folder of modules that cannot be imported."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of the folder')\n")
    return tmp_path


def test_the_doctor_is_not_misled(fresh, shadowed):
    findings = json.loads(fresh.run("-m", "zeusm", "doctor", "--json", cwd=shadowed).stdout)
    wrong = [finding for finding in findings if finding["state"] == "wrong"]
    assert wrong == []


@pytest.mark.parametrize("command", [["--version"], ["info"], ["bench", "--rounds", "1"]])
def test_commands_do_not_import_modules_of_the_folder(fresh, shadowed, command):
    assert "zeusm" in fresh.run("-m", "zeusm", *command, cwd=shadowed).stdout


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_users_program_imports_them(fresh, shadowed, command):
    program = [sys.executable, "-c", "import random"]
    run = fresh.run("-m", "zeusm", command, *program, cwd=shadowed, fails=True)
    assert run.stderr == "random of the folder\n"


def test_a_folder_that_was_removed(tmp_path):
    folder = tmp_path / "removed"
    folder.mkdir()
    script = 'cd "$1"; rmdir "$1"; exec "$2" -m zeusm doctor'
    run = subprocess.run(
        ["sh", "-c", script, "sh", folder, sys.executable],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    first, remedy, *others = run.stdout.splitlines()
    assert first.startswith("WRONG current folder     it does not exist")
    assert remedy.strip() == "-> cd"
    assert not [line for line in others if line.startswith("WRONG")], run.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_folder_that_this_user_cannot_search(fresh):
    code = """
        import os, sys
        from zeusm._doctor import Machine

        os.chdir(sys.argv[1])
        os.setuid(65534)
        sys.executable = "/bin/echo"  # This user may not be able to run the interpreter.
        print(Machine().run("program").stdout)
    """
    with tempfile.TemporaryDirectory() as folder:
        assert fresh(code, folder).stdout == "-P -X utf8 -c program\n\n"


def test_a_folder_that_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(find(Machine())) == []
    tmp_path.rmdir()
    (found,) = find(Machine())
    assert found.state is State.WRONG
