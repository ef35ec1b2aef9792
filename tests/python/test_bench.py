"""`zeusm bench`."""

import json
from statistics import median

import pytest
from zeusm._bench.alternate import alternate, medians

pytestmark = pytest.mark.once


def test_figures_of_this_machine(fresh):
    pytest.importorskip("dpctl")
    output = fresh.run("-m", "zeusm", "bench", "--rounds", "2", "--json").stdout
    result = json.loads(output)
    assert result["rounds"] == 2
    assert result["machine"]["devices"]
    assert result["machine"]["dpctl"]
    groups = [figure["group"] for figure in result["figures"]]
    assert set(groups) == {"allocate and free", "exchange", "copy", "kernel"}
    names = {figure["name"] for figure in result["figures"]}
    assert {"device 64 B", "memoryview", "read the interface", "host to device, 1 MiB"} <= names
    for figure in result["figures"]:
        assert figure["unit"] == "s"
        peers = figure["values"]
        assert all(0 < value < 60 for value in peers.values())
        if figure["group"] != "kernel":  # Its peer is OpenCL's device, which may be absent.
            assert list(peers) == ["zeusm", "dpctl"]
            ratio = figure["ratio"]
            assert ratio["peer"] == "dpctl"
            assert ratio["low"] <= ratio["median"] <= ratio["high"]


def test_an_output_without_the_characters_of_the_figures(fresh):
    run = fresh.run(
        "-m", "zeusm", "bench", "--rounds", "1", env={"PYTHONIOENCODING": "ascii:strict"}
    )
    assert "\\xb5s" in run.stdout


def test_without_dpctl_there_are_times_and_no_ratios(fresh):
    code = """
        import sys
        sys.modules["dpctl"] = sys.modules["dpctl.memory"] = None
        from zeusm.__main__ import main
        sys.exit(main(["bench", "--rounds", "1"]))
    """
    run = fresh(code)
    assert "device 64 B" in run.stdout
    assert "so there is no ratio" in run.stdout
    assert " to " not in run.stdout.split("exchange")[0]
    assert run.stderr == ""  # It tells a terminal only.


def test_a_wrong_number_of_rounds(fresh):
    run = fresh.run("-m", "zeusm", "bench", "--rounds", "0", fails=True)
    assert run.stderr == "zeusm bench: --rounds is 0; at least 1 is needed\n"


def test_rounds_alternate():
    calls = []
    times = alternate(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 4, budget=1e-9
    )
    assert {peer: len(each) for peer, each in times.items()} == {"a": 2, "b": 2}
    assert "".join(calls).endswith("abba")
    assert medians(times) == {peer: median(each) for peer, each in times.items()}
