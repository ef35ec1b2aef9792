"""`zeusm info`, and errors of the commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zeusm
import zeusm.memory as zm
from conftest import UNKNOWN_PROCESSOR
from zeusm._commands.run import LOADER
from zeusm._pictures.text import size

pytestmark = pytest.mark.once


def info(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "zeusm", "info", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize("command", ["info", "doctor"])
def test_an_output_that_cannot_be_written(command):
    """The reader of a pipe may leave early; a full disk is an error with a message."""
    arguments = [sys.executable, "-m", "zeusm", command]
    reader, writer = os.pipe()
    os.close(reader)
    closed = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (closed.returncode, closed.stderr.replace(UNKNOWN_PROCESSOR, "")) == (1, "")
    with open("/dev/full", "w") as full:
        failed = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True)
    told = failed.stderr.replace(UNKNOWN_PROCESSOR, "")
    assert (failed.returncode, told) == (1, "zeusm: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("command", [["info", "--json"], ["doctor"], ["check", "true"]])
def test_without_an_output(command):
    arguments = [sys.executable, "-m", "zeusm", *command]
    usual = subprocess.run(arguments, capture_output=True)
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *arguments], stderr=subprocess.PIPE)
    assert (closed.returncode, b"Traceback" in closed.stderr) == (usual.returncode, False)


@pytest.mark.parametrize("command", ["info", "bench"])
def test_a_wrong_choice_of_the_runtime(command):
    run = subprocess.run(
        [sys.executable, "-m", "zeusm", command],
        env=os.environ | {"ZEUSM_RUNTIME": "bogus"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(f"zeusm {command}: ")
    assert "bogus" in run.stderr
    assert "Traceback" not in run.stderr


def test_json_has_what_the_package_says():
    found = json.loads(info("--json").stdout)
    assert found["zeusm"] == zeusm.__version__
    assert found["runtime"]["kind"] == zeusm.runtime().kind
    assert found["runtime"]["reason"]
    assert [device["name"] for device in found["devices"]] == zeusm.runtime().device_names
    for device in found["devices"]:
        assert 0 < device["free"] <= device["total"]
    # Intel's driver reports the machine's available memory as the total of an integrated GPU, and it changes.
    changes = 0 if zeusm.runtime().kind == "cpu" else 0.2
    assert found["devices"][0]["total"] == pytest.approx(zm.mem_get_info()[1], rel=changes)
    assert [pool["kind"] for pool in found["pools"]] == ["device", "shared", "host"]
    assert "numpy" in found["packages"]


def test_the_text_has_a_line_for_each():
    run = info()
    for title in ("zeusm", "python", "packages", "runtime", "device 0", "pool: host"):
        assert any(line.startswith(f"{title} ") for line in run.stdout.splitlines()), title
    assert "free of" in run.stdout
    assert run.stderr.replace(UNKNOWN_PROCESSOR, "") == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3 TiB")],
)
def test_sizes(count, text):
    assert size(count) == text


def test_an_error_of_a_command_keeps_its_output(fresh):
    told = fresh(
        """
import sys
from pathlib import Path
import types
from zeusm import __main__ as zeusm

def call(options):
    print("a line")
    open("/nonexistent")

zeusm.COMMANDS = [types.SimpleNamespace(NAME="it", HELP="", add_arguments=id, call=call)]
sys.exit(zeusm.main(["it"]))
""",
        fails=True,
    )
    assert told.stdout == "a line\n"
    assert "/nonexistent" in told.stderr
    assert "Traceback" not in told.stderr


def test_the_path_of_the_driver(tmp_path):
    """For `ZE_ENABLE_ALT_DRIVERS`: no runtime is initialised, so a wrong choice of one does not matter."""

    def printed(**variables):
        environment = os.environ | {"ZEUSM_RUNTIME": "bogus"} | variables
        if not variables:
            environment.pop("ZEUSM_CPU_LIBRARY", None)
        run = subprocess.run(
            [sys.executable, "-m", "zeusm", "info", "--driver"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return Path(run.stdout.rstrip("\n"))

    path = printed()
    assert path.samefile(Path(zeusm.__file__).parent / "lib" / LOADER)
    assert path.is_absolute()
    assert printed(ZEUSM_CPU_LIBRARY=f"built/{LOADER}") == tmp_path / "built" / LOADER


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["docotr"], "doctor"),
        (["memory", "sumary", "history.json"], "summary"),
        (["memory", "export", "--to", "perfeto", "history.json"], "perfetto"),
        (["something"], None),
    ],
)
def test_a_misspelt_choice_is_suggested(fresh, arguments, name):
    told = fresh.run("-m", "zeusm", *arguments, fails=True).stderr
    assert "invalid choice" in told
    assert (name is None) == ("mean" not in told)
    assert name is None or name in told.rpartition("mean")[2]
