"""Each cell of the table "What each peer takes" in docs/exchange.md, for the peers of this environment."""

import re

import pytest
from peers_table import COLUMNS, DOCUMENT, OF_PEERS, ROWS, is_installed, outcome, table

# Some peers raise warnings of their own.
pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("default")]


def test_the_table_has_these_rows_and_columns():
    found = table()
    assert list(found) == list(ROWS)
    assert all(list(cells) == list(COLUMNS) for cells in found.values())


def test_the_tests_of_the_frameworks_exist():
    """Each number in the table "Frameworks" is that of a test."""
    text = DOCUMENT.read_text().split("## Frameworks", 1)[1].split("\n## ", 1)[0]
    listed = re.findall(r"^(\d+)\. `(tests/[\w/]+\.py)::(\w+)`$", text, re.MULTILINE)
    assert {number for number, _, _ in listed} == set(re.findall(r"\((\d+)\)", text))
    for _, path, name in listed:
        assert f"def {name}(" in (DOCUMENT.parents[1] / path).read_text(), (path, name)


HERE = [column for column in COLUMNS if column not in OF_PEERS and is_installed(column)]


@pytest.mark.parametrize("column", HERE)
@pytest.mark.parametrize("row", ROWS)
def test_a_cell(row, column):
    assert outcome(row, column) == table()[row][column]
