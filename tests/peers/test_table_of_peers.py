"""The cells of docs/exchange.md for the peers of this environment."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import peers_table
import pytest

pytestmark = pytest.mark.filterwarnings(
    "default"
)  # scikit-learn-intelex raises warnings of its own.

HERE = [column for column in peers_table.COLUMNS if peers_table.is_installed(column)]


def test_the_peers_are_installed():
    """All but PyTorch, whose column tests/torch tests."""
    assert {"h5py", "scikit-learn-intelex", "mpi4py", "Dask", "Ray"} <= set(HERE)


@pytest.mark.parametrize("column", HERE)
@pytest.mark.parametrize("row", peers_table.ROWS)
def test_a_cell(row, column):
    assert peers_table.outcome(row, column) == peers_table.table()[row][column]
