"""The benchmarks of `make bench` report the figures that have goals, and the goals are judged correctly."""

import json
import os

import pytest
from conftest import ROOT

pytestmark = pytest.mark.once
SLOW = ("process", "kernels", "live")

BENCHES = ROOT / "benches"
RESULTS = {path.stem: json.loads(path.read_text()) for path in BENCHES.glob("results/*.json")}


@pytest.fixture
def run(monkeypatch):
    """The module `benches/run.py`."""
    monkeypatch.syspath_prepend(BENCHES)
    import run

    return run


@pytest.mark.parametrize(
    "program",
    [
        *("memory", "allocator", "exchange", "in_place", "suspend"),
        *(pytest.param(name, marks=pytest.mark.daily) for name in SLOW),
    ],
)
def test_a_program_reports_figures(fresh, program):
    pytest.importorskip("dpctl")
    output = fresh.run(
        BENCHES / f"{program}.py", env={"ZEUSM_BENCH_ROUNDS": "1", "PATH": os.environ["PATH"]}
    ).stdout
    records = [json.loads(line) for line in output.splitlines()]
    known = {
        (figure["group"], figure["name"], figure["unit"])
        for result in RESULTS.values()
        for figure in result["figures"]
    }
    for record in records:
        assert (record["group"], record["name"], record["unit"]) in known
        assert "zeusm" in record["values"]
        assert all(value > 0 for value in record["values"].values())
    assert {record["group"] for record in records} <= {group for group, _, _ in known}


def test_memory_for_other_processes_is_compared_with_each_way_through_the_host(fresh):
    pytest.importorskip("mpi4py")
    variables = {"ZEUSM_BENCH_ROUNDS": "1", "ZEUSM_BENCH_LARGEST": "1024"}
    output = fresh.run(BENCHES / "ipc.py", env=variables | {"PATH": os.environ["PATH"]}).stdout
    records = [json.loads(line) for line in output.splitlines()]
    assert [(record["group"].split()[-1], record["name"]) for record in records] == [
        (way, f"1 KiB, {processes} processes")
        for processes in (2, 4, 8)
        for way in ("opened", "copied")
    ]
    for record in records:
        assert record["values"].keys() == {"zeusm", "pickle", "shared memory", "MPI"}
        assert all(value > 0 for value in record["values"].values())


def test_the_figures_shown_are_complete(run):
    """The results cover every goal, with medians over at least three processes."""
    judged = {goal["group"] for result in RESULTS.values() for goal in result["goals"]}
    assert judged == {group for group, _ in run.goals.GOALS}
    for make, result in RESULTS.items():
        assert result["machine"]["make"] == make
        assert result["processes"] >= 3
        assert result["goals"] == list(run.goals.judge(result["figures"]))
    for suffix in ("svg", "png"):
        assert (BENCHES / "results" / f"comparison.{suffix}").stat().st_size > 10_000


def test_figures_are_spread_over_processes(run, monkeypatch):
    values = iter(
        [{"zeusm": 2.0, "dpctl": 4.0}, {"zeusm": 1.0, "dpctl": 4.0}, {"zeusm": 9.0, "dpctl": 3.0}]
    )
    record = {"group": "import", "name": "both", "unit": "s"}
    monkeypatch.setattr(run, "records", lambda program: [record | {"values": next(values)}])
    (figure,) = run.gather(["process"], 3)
    assert figure["values"]["zeusm"] == {"median": 2.0, "least": 1.0, "most": 9.0}
    assert figure["ratios"] == {"dpctl": {"median": 0.5, "least": 0.25, "most": 3.0}}
    (line,) = run.table([figure])
    assert "0.50 (0.25 to 3.00) of dpctl" in line


def of(group, **medians):
    """Figures of a group: each median is both the value and the ratio to dpctl."""
    for name, value in medians.items():
        spread = {"median": value}
        yield {
            "group": group,
            "name": name,
            "values": {"zeusm": spread},
            "ratios": {"dpctl": spread},
        }


def test_a_run_of_some_programs_replaces_their_figures(run):
    old = {"figures": [*of("copy 64 B", a=3), *of("import", b=4)], "machine": {}, "processes": 3}
    machine = {"date": "today", "processor": "one", "load_before": 2.0}
    new = {"figures": list(of("import", c=5)), "machine": machine, "processes": 3}
    result = run.added(old, new, ["process"])
    assert [figure["name"] for figure in result["figures"]] == ["a", "c"]
    assert result["later"] == [machine | {"programs": ["process"]}]
    assert run.added(result, new, ["live"])["later"][1]["programs"] == ["live"]


def test_the_worst_figure_decides(run):
    figures = [
        *of("copy 64 B", good=0.1, bad=0.31),
        *of("two threads", good=1.9, bad=1.71),
        *of("no goal", any=7),
    ]
    late, enough = run.goals.judge(figures)
    assert (late["best"], late["worst"], late["worst figure"]) == (0.1, 0.31, "bad")
    assert not late["reached"]
    assert (enough["best"], enough["worst"], enough["reached"]) == (1.9, 1.71, True)
    results = {"amd": {"goals": [late, enough]}, "intel": {"goals": [enough]}}
    assert list(run.goals.table(results)) == [
        "copy 64 B: at most 0.2 of dpctl: NOT reached on amd",
        "    amd   0.10 to 0.31 (bad)",
        "two threads: at least 1.7: reached on amd, reached on intel",
        "    amd   1.90 to 1.71 (bad)",
        "    intel 1.90 to 1.71 (bad)",
    ]
