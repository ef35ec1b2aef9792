"""Each cell of the table "What each peer takes" in docs/exchange.md, for the peers of this environment."""

import pytest
from peers_table import COLUMNS, OF_PEERS, ROWS, is_installed, outcome, table

# Some peers raise warnings of their own.
pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("default")]


def test_the_table_has_these_rows_and_columns():
    found = table()
    assert list(found) == list(ROWS)
    assert all(list(cells) == list(COLUMNS) for cells in found.values())


HERE = [column for column in COLUMNS if column not in OF_PEERS and is_installed(column)]


@pytest.mark.parametrize("column", HERE)
@pytest.mark.parametrize("row", ROWS)
def test_a_cell(row, column):
    assert outcome(row, column) == table()[row][column]
