"""Each cell of the table "What each peer takes" in docs/exchange.md, for the peers of this environment."""

import re

import pytest
from conftest import ROOT
from peers_table import COLUMNS, OF_PEERS, ROWS, is_installed, outcome, section, table

# Some peers raise warnings of their own.
pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("default")]


def test_the_table_has_these_rows_and_columns():
    found = table()
    assert list(found) == list(ROWS)
    assert all(list(cells) == list(COLUMNS) for cells in found.values())


# The columns of the table "Frameworks", and what a file imports that tests a cell there. numba-dpex has dpctl's memory.
FRAMEWORKS = {
    "dpctl": ["dpctl"],
    "dpnp": ["dpnp"],
    "numba-dpex": ["numba_dpex", "dpctl"],
    "NumPy": ["numpy"],
    "JAX": ["jax"],
    "PyTorch for CPUs": ["torch"],
    "tvm-ffi": ["tvm_ffi"],
    "Arrow": ["pyarrow"],
    "CUDA": ["cuda_driver"],
}


def numbered():
    """Below the table: the file and the name of each test, by its number."""
    lines = re.findall(
        r"^(\d+)\. `(tests/[\w/]+\.py)::(\w+)`$", section("Frameworks"), re.MULTILINE
    )
    return {number: (path, name) for number, path, name in lines}


def test_the_tests_of_the_frameworks_are_run():
    """Each number is that of a test, which a target of the Makefile runs."""
    listed = numbered()
    assert list(listed) == [str(number) for number in range(1, len(listed) + 1)]
    assert set(listed) == set(re.findall(r"\((\d+)\)", section("Frameworks")))
    recipes = "".join(file.read_text() for file in (ROOT / "Makefile", *ROOT.glob("make/*.mk")))
    for path, name in listed.values():
        assert f"def {name}(" in (ROOT / path).read_text(), (path, name)
        folder = path.rpartition("/")[0]
        assert re.search(rf"\(PYTEST(?:_LONG)?\).* {folder}\b", recipes), folder


def test_each_cell_of_the_frameworks_has_a_test():
    """A file that tests a cell imports its framework. The rows of calls have no tests of their own."""
    listed, found = numbered(), table("Frameworks")
    assert all(list(cells) == list(FRAMEWORKS) for cells in found.values())
    rows = {row: cells for row, cells in found.items() if "call" not in row}
    assert len(found) - len(rows) == 2
    for row, cells in rows.items():
        for column, cell in cells.items():
            numbers = re.findall(r"\((\d+)\)", cell)
            assert numbers or cell in ("", "no USM of its own"), (row, column)
            for number in numbers:
                source = (ROOT / listed[number][0]).read_text()
                imports = (
                    rf"(?:\b(?:from|import) |importorskip\(\")(?:{'|'.join(FRAMEWORKS[column])})\b"
                )
                assert re.search(imports, source), (row, column, listed[number])


HERE = [column for column in COLUMNS if column not in OF_PEERS and is_installed(column)]


@pytest.mark.parametrize("column", HERE)
@pytest.mark.parametrize("row", ROWS)
def test_a_cell(row, column):
    assert outcome(row, column) == table()[row][column]
