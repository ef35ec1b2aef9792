"""Random calls with random arguments: programs/random_calls.py says what must hold.

ZEUSM_FUZZ is the number of calls of each program.
"""

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PROGRAM = Path(__file__).parent / "programs" / "random_calls.py"
CALLS = os.environ.get("ZEUSM_FUZZ", "5000")


@pytest.mark.parametrize(
    "variables", [{}, {"ZEUSM_POOL": "0"}, {"ZEUSM_CPU_DEVICES": "1+cpu"}], ids=str
)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_answer_is_a_result_or_an_exception(fresh, seed, variables):
    # In this way it is enabled before the driver's own handler of faults.
    traced = "-X", "faulthandler"
    fresh.run(*traced, "-W", "ignore", PROGRAM, str(seed), CALLS, env=variables)
