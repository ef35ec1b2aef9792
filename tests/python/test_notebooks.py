"""The magic `%%zeusm_memory`, and the notebooks of the documents, in IPython."""

import html
import json
import re

import pytest
from conftest import ROOT

pytestmark = pytest.mark.once

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def executed(fresh, tmp_path):
    """Runs a notebook in a new shell, and returns its cells."""

    def run(path):
        program = ROOT / "tests/python/notebooks.py"
        done = fresh.run(program, path, env={"IPYTHONDIR": str(tmp_path)})
        assert done.stderr == ""
        return json.loads(done.stdout)["cells"]

    return run


@pytest.fixture
def ipython(executed, tmp_path):
    """Runs cells, and returns the outputs of each."""

    def run(*sources):
        first = "import zeusm.memory as zm\n%load_ext zeusm"
        cells = [{"cell_type": "code", "source": each} for each in (first, *sources)]
        path = tmp_path / "cells.ipynb"
        path.write_text(json.dumps({"cells": cells}))
        loaded, *outputs = [cell["outputs"] for cell in executed(path)]
        assert loaded == []
        return outputs

    return run


def plain(output):
    """The text of what was printed or displayed, and of an error."""
    lines = output.get("text") or output.get("traceback") or output["data"]["text/plain"]
    return "".join(lines)


def report(output):
    """The report in the frame that a cell displays."""
    (document,) = re.findall(r'<iframe srcdoc="([^"]*)"', "".join(output["data"]["text/html"]))
    return html.unescape(document)


def test_a_cell_runs_as_without_the_magic(ipython):
    ((printed, result, shown),) = ipython(
        "%%zeusm_memory\n"
        "import asyncio\n"
        "print('text')\n"
        "kept = zm.MemoryUSMDevice(3 << 20)\n"
        "zm.MemoryUSMShared(5 << 20).close()\n"
        "await asyncio.sleep(0)\n"
        "kept.nbytes"
    )
    assert (plain(printed), plain(result)) == ("text\n", str(3 << 20))
    document, text = report(shown), plain(shown)
    assert "<dt>Peak in use</dt><dd>8 MiB</dd>" in document
    assert "<dt>In use at the end</dt><dd>3 MiB</dd>" in document
    assert "Memory of the cell" in document
    assert re.search(r"^Peak in use: +8 MiB$", text, re.MULTILINE)
    # The stacks name the cell and its lines.
    assert "&lt;module&gt; (In[2]:5)" in document
    assert "<module> (In[2]:4)" in text


def test_an_exception_is_shown_and_the_report_too(ipython):
    (error, shown), after = ipython(
        "  \n%%zeusm_memory\nkept = zm.MemoryUSMHost(1 << 20)\n1 / 0", "kept.nbytes"
    )
    assert error["ename"] == "ZeroDivisionError"
    assert "1 / 0" in re.sub(r"\x1b\[[\d;]*m", "", plain(error))
    assert not re.search("run_cell_magic|_ipython.py", plain(error))
    assert "<dt>Peak in use</dt><dd>1 MiB</dd>" in report(shown)
    # The report was of that cell alone.
    assert [plain(each) for each in after] == [str(1 << 20)]


def test_a_line_records_the_rest_of_the_cell(ipython):
    ((shown,),) = ipython(
        "zm.MemoryUSMHost(9 << 20).close()\n%zeusm_memory\nzm.MemoryUSMHost(2 << 20).close()"
    )
    assert "<dt>Peak in use</dt><dd>2 MiB</dd>" in report(shown)


def test_a_cell_that_does_not_compile_records_nothing(ipython):
    (error,), (events,) = ipython("%%zeusm_memory\n)", "zm.snapshot()['events']['time']")
    assert error["ename"] == "SyntaxError"
    assert plain(events) == "[]"


def test_the_import_of_zeusm_loads_none_of_it(fresh):
    names = fresh("import sys, zeusm.memory; print(*sys.modules)").stdout.split()
    assert "zeusm._history" in names
    assert [name for name in names if re.search("pictures|notebook|ipython", name)] == []


def comparable(output):
    """What an output is on each machine: its text, or that it is a table or a report."""
    if "text/html" in output.get("data", {}):
        return sorted(output["data"])
    return re.sub("(?<= on ).*", "...", plain(output))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_shows_what_it_prints(executed, path):
    """`.venv/bin/python tests/python/notebooks.py FILE --save` saves what it prints now."""
    text = path.read_text(encoding="utf-8")
    if "dpnp" in text:
        pytest.importorskip("dpnp")
    saved = json.loads(text)["cells"]
    assert sum(cell["cell_type"] == "code" for cell in saved) >= 3
    for now, before in zip(executed(path), saved, strict=True):
        found, wanted = (
            [comparable(each) for each in cell.get("outputs", [])] for cell in (now, before)
        )
        assert found == wanted
