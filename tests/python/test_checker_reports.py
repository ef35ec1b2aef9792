"""The report of `python -m zeusm check` as SARIF, and its notes of memory that two processes use."""

import json
import sys

import pytest
import zeusm

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is in .venv only")

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        zeusm.runtime().kind != "cpu", reason="the checker is a part of the CPU runtime"
    ),
]

PROGRAM = """
import ctypes
import zeusm.memory as zm

def make():
    return zm.MemoryUSMShared(1000)

def touch():
    memory = make()
    pointer = memory._pointer
    memory.close()
    ctypes.string_at(pointer, 4)

touch()
"""

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
PLACE = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[!-;=?-\[\]_a-z~]+$"}},
                },
                "region": {
                    "required": ["startLine"],
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
        "message": TEXT,
    },
}


def objects(required, **properties):
    """The schema of a list of objects."""
    item = {"type": "object", "required": required, "properties": properties}
    return {"type": "array", "items": item}


#: What section 3 of SARIF 2.1.0 demands of the members that a report has.
SCHEMA = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": objects(
            ["tool", "results"],
            tool={
                "required": ["driver"],
                "properties": {
                    "driver": {
                        "required": ["name", "rules"],
                        "properties": {"rules": objects(["id"], shortDescription=TEXT)},
                    }
                },
            },
            results=objects(
                ["ruleId", "message"],
                level={"enum": ["none", "note", "warning", "error"]},
                message=TEXT,
                occurrenceCount={"type": "integer", "minimum": 1},
                locations={"type": "array", "items": PLACE},
                relatedLocations={
                    "type": "array",
                    "items": {**PLACE, "required": ["physicalLocation", "message"]},
                },
            ),
        ),
    },
}


def place(location):
    """The file and the line of a location."""
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def line(code):
    """The number of the line of the program that is this code."""
    return 1 + [it.strip() for it in PROGRAM.splitlines()].index(code)


@pytest.fixture
def sarif(fresh, tmp_path):
    """Runs a program under the checker in its folder; returns the run in its SARIF report."""

    def run(path, faulty=True):
        report = tmp_path / "report.sarif"
        command = ["-m", "zeusm", "check", "--report", report, sys.executable, path]
        fresh.run(*command, cwd=tmp_path, fails=faulty)
        document = json.loads(report.read_text())
        jsonschema.validate(document, SCHEMA)
        [run] = document["runs"]
        return run

    return run


@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_report_as_sarif_has_the_places_of_a_finding(sarif, tmp_path, is_absolute):
    path = tmp_path / "a prögram.py"
    path.write_text(PROGRAM, encoding="utf-8")
    run = sarif(path if is_absolute else path.name)
    [result] = run["results"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "zeusm check"
    assert driver["version"] == zeusm.__version__
    assert result["ruleId"] == driver["rules"][result["ruleIndex"]]["id"] == "use-after-free"
    assert result["level"] == "error"
    assert result["message"]["text"] == "the host reads freed memory"
    uri = "a%20pr%C3%B6gram.py"
    [at] = result["locations"]
    assert place(at) == (uri, line("ctypes.string_at(pointer, 4)"))
    assert at["logicalLocations"] == [{"fullyQualifiedName": "touch"}]
    related = {it["message"]["text"]: place(it) for it in result["relatedLocations"]}
    assert related == {
        "allocated at": (uri, line("return zm.MemoryUSMShared(1000)")),
        "freed at": (uri, line("memory.close()")),
    }


def test_a_file_elsewhere_has_its_whole_path(sarif, tmp_path_factory):
    path = tmp_path_factory.mktemp("elsewhere") / "program.py"
    path.write_text(PROGRAM)
    [result] = sarif(path)["results"]
    assert place(result["locations"][0])[0] == path.as_uri()


def test_a_correct_program_has_a_report_as_sarif_without_results(sarif, tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import zeusm.memory as zm\nzm.MemoryUSMDevice(1000).memset(1)\n")
    run = sarif(path, faulty=False)
    assert run["results"] == []
    assert len(run["tool"]["driver"]["rules"]) > 10


#: A process that opens the memory of another one, twice, and what it does with it.
IMPORTER = """
import sys
import zeusm.memory as zm

for _ in range(2):
    with zm.IPCMemoryHandle.open(bytes.fromhex(sys.argv[1])) as opened:
        {use}
"""

#: A process that lends another one its memory.
EXPORTER = """
import subprocess, sys
import zeusm.memory as zm

memory = zm.{kind}(1000)
memory.memset(1)
command = [sys.executable, "-c", sys.argv[1], bytes(memory.ipc_handle()).hex()]
assert subprocess.run(command).returncode == 0
{own}
print(memory.tobytes()[0])
"""

WRITES = "source = zm.MemoryUSMDevice(1000); source.memset(7); opened.copy_from_device(source)"


@pytest.fixture
def lend(fresh, tmp_path):
    """Runs both processes under the checker; returns the findings in their reports and what they said."""

    def run(use, *options, kind="MemoryUSMDevice", own=""):
        reports = tmp_path / "%p.json"
        arguments = ["-m", "zeusm", "check", "--report", reports, *options, sys.executable, "-c"]
        program = EXPORTER.format(kind=kind, own=own)
        result = fresh.run(*arguments, program, IMPORTER.format(use=use))
        documents = [json.loads(it.read_text()) for it in tmp_path.glob("*.json")]
        assert len(documents) == 2
        findings = [finding for document in documents for finding in document["findings"]]
        return findings, result

    return run


@pytest.mark.parametrize("kind", ["MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"])
def test_the_order_between_processes_is_unknown(lend, kind):
    [finding], result = lend(WRITES, kind=kind)
    assert result.stdout == "7\n"
    assert finding["kind"] == "ipc-order"
    assert finding["message"].endswith("; the order between processes is not checked")
    assert finding["count"] == 2
    assert finding["stack"]["python"][-1].endswith(" in <module>")
    assert finding["allocation"]["size"] == 1000
    assert "zeusm check: ipc-order: " in result.stderr
    assert "findings" not in result.stderr


def test_memory_that_is_opened_and_not_used_has_no_note(lend):
    findings, result = lend("pass")
    assert findings == []
    assert result.stderr == ""


def test_a_note_can_be_suppressed(lend, tmp_path):
    suppressions = tmp_path / "suppressions"
    suppressions.write_text('ipc-order:File "<string>"\n')
    findings, result = lend(WRITES, "--suppressions", suppressions)
    assert findings == []
    assert result.stderr == ""


def test_a_process_has_no_note_of_its_own_memory(lend):
    own = """
with zm.IPCMemoryHandle.open(bytes(memory.ipc_handle())) as opened:
    opened.memset(5)
"""
    findings, result = lend("pass", own=own)
    assert result.stdout == "5\n"
    assert findings == []
