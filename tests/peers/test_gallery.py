"""The Dask job of the gallery spills as its picture shows. `test_mpi.py` has the program of MPI."""

import sys
from xml.etree import ElementTree

import pytest
from conftest import ROOT

PROGRAM = ROOT / "examples" / "gallery" / "spill.py"
PICTURE = ROOT / "docs" / "_static" / "gallery" / "spill.svg"


def bars(path):
    """The heights of the bars, by colour."""
    found = {}
    for each in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}rect"):
        found.setdefault(each.get("fill"), []).append(each.get("height"))
    return found


@pytest.mark.daily
def test_the_worker_spills(run, tmp_path):
    path = tmp_path / "picture.svg"
    output = run(sys.executable, "-W", "error", PROGRAM, path).stdout
    assert output == "MiB at most: 4 on device, 3 on host, 5 on disk\n"
    found, shown = bars(path), bars(PICTURE)
    assert found["#e69f00"] == shown["#e69f00"]
    assert found.keys() == shown.keys()
