"""The tools behind `make test-conformance` and `make test-pocl`, with programs that stand in for those of tests."""

import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
sys.path.insert(0, str(ROOT / "tests" / "pocl"))
import compared
import googletest
import processes
import programs
from known import Known

pytestmark = pytest.mark.once

# Tests by what they do, as googletest prints them; the output of others may stand before a line.
PROGRAM = """#!{python}
import os, sys, time
TESTS = ["A.passes", "A.fails", "A.skips", "P/B.dies/0", "P/B.dies/1", "A.hangs", "A.last", "A.DISABLED_not"]
if "--gtest_list_tests" in sys.argv:
    print("A.", *("  " + t[2:] for t in TESTS if t.startswith("A.")), sep="\\n")
    print("P/B.", "  dies/0  # GetParam() = 4", "  dies/1  # GetParam() = 5", sep="\\n")
    sys.exit()
filter = open(sys.argv[1].split("=")[1]).readline().split("=")[1].strip().split(":")
for test in filter:
    print(f"[ RUN      ] {{test}}", flush=True)
    if "dies" in test:
        os.abort()
    while "hangs" in test:
        print("[debug]", flush=True)
        time.sleep(0.05)
    result = {{"A.fails": "  FAILED  ", "A.skips": "  SKIPPED "}}.get(test, "       OK ")
    print(f"[debug] [{{result}}] {{test}} (1 ms)", flush=True)
print("[  FAILED  ] A.fails, listed again", flush=True)
sys.exit({code})
"""


def stand_in(folder, code=1):
    path = folder / "test_something"
    path.write_text(PROGRAM.format(python=sys.executable, code=code))
    path.chmod(0o755)
    return path


def test_each_test_has_a_result_though_some_die_or_hang(tmp_path):
    program = stand_in(tmp_path)
    names = googletest.tests(program, {})
    assert len(names) == 7, names
    assert dict(googletest.run(program, names, 3, {})) == {
        "A.passes": processes.PASSED,
        "A.fails": processes.FAILED,
        "A.skips": processes.SKIPPED,
        "P/B.dies/0": processes.DIED,
        "P/B.dies/1": processes.DIED,
        "A.hangs": processes.HUNG,
        "A.last": processes.PASSED,
    }


def test_an_error_behind_the_last_test_is_a_result(tmp_path):
    program = stand_in(tmp_path, code=7)
    assert dict(googletest.run(program, ["A.passes"], 10, {})) == {
        "A.passes": processes.PASSED,
        processes.EXIT: processes.DIED,
    }


def test_what_differs_from_the_list_is_told(tmp_path):
    head = 'classes = ["defect of the test"]\n'
    entry = '[[known]]\narea = "{}"\ntests = {}\nclass = "defect of the test"\nreason = "a"\n{}\n'
    path = tmp_path / "known.toml"
    path.write_text(
        head
        + entry.format("a", ["S.fails*"], "")
        + entry.format("a", ["S.timed"], "may_pass = true")
        + entry.format("a", ["S.brackets[x]"], "")
        + entry.format("b", ["S.new"], "")
    )
    known = Known(path)
    results = {
        "S.fails/0": processes.FAILED,
        "S.fails/1": processes.PASSED,
        "S.fails/2": processes.SKIPPED,
        "S.timed": processes.PASSED,
        "S.brackets[x]": processes.DIED,
        "S.new": processes.HUNG,
        "S.good": processes.PASSED,
    }
    new, obsolete = known.judge("a", results)
    assert new == {"S.new": processes.HUNG}
    assert obsolete == ["S.fails/1", "S.fails/2"]
    assert known.stale("a", ["S.timed", "S.other", "S.brackets[x]"]) == ["S.fails*"]


def test_a_result_that_tells_another_class_is_new(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(
        'classes = ["lacks it", "is wrong"]\n'
        '[[known]]\narea = "a"\ntests = ["x", "y"]\nclass = "lacks it"\nreason = "a"\n'
    )
    judged = Known(path).judge("a", {"x": "lacks it", "y": "is wrong"})
    assert judged == ({"y": "is wrong"}, [])


@pytest.mark.parametrize("folder", ["conformance", "pocl"])
def test_the_committed_lists_can_be_read(folder):
    assert Known(ROOT / "tests" / folder / "known.toml").entries


def results_of(tmp_path, marks, names, text):
    """What lines tell of tests in a process that then ends with the error code of a signal."""
    program = f"import os, sys; print({text!r}, flush=True); os.kill(os.getpid(), 9)"

    def command(names, _):
        return [sys.executable, "-c", program]

    found = {}
    for name, result in processes.run(command, names, 20, marks):
        found.setdefault(name, result)
    return found


def test_the_harness_of_rust_is_understood(tmp_path):
    lines = [
        '{ "type": "test", "event": "started", "name": "a::b" }',
        '{ "type": "test", "name": "a::b", "event": "failed", "stdout": "\\"event\\": \\"ok\\"" }',
        '{ "type": "test", "event": "started", "name": "a::dies" }',
    ]
    found = results_of(tmp_path, programs.RUST, ["a::b", "a::dies"], "\n".join(lines))
    assert found == {"a::b": processes.FAILED, "a::dies": processes.DIED}


def test_lines_of_pytest_and_of_cases_are_understood(tmp_path):
    text = "[begun] t.py::x[a b]\nF\n[ended] failed t.py::x[a b]\n[begun] t.py::y"
    found = results_of(tmp_path, programs.PYTEST, ["t.py::x[a b]", "t.py::y"], text)
    assert found == {"t.py::x[a b]": processes.FAILED, "t.py::y": processes.DIED}
    text = "[begun] sin f4\n[ended] refused sin f4"
    found = results_of(tmp_path, compared.MARKS, ["sin f4"], text)
    assert found["sin f4"] == compared.REFUSED


def test_a_deviation_is_somebodys():
    wrong, refused = processes.FAILED, compared.REFUSED
    right = processes.PASSED
    for found, whose in [
        ({}, right),
        ({"Intel": (wrong, right)}, "zeusm"),
        ({"PoCL": (refused, right), "Intel": (wrong, wrong)}, "zeusm"),
        ({"Intel": (wrong, refused)}, "Intel's OpenCL is wrong"),
        ({"PoCL": (wrong, wrong)}, "PoCL is wrong"),
        ({"PoCL": (refused, refused)}, "PoCL lacks it"),
        ({"PoCL": (processes.DIED, processes.DIED)}, "PoCL ends the process"),
        ({"PoCL": (wrong, wrong), "Intel": (wrong, wrong)}, "the library"),
        ({"PoCL": (refused, refused), "Intel": (wrong, wrong)}, "undecided"),
    ]:
        assert compared.verdict(found) == whose, found
