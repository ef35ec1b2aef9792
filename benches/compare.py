"""Compares peers in alternating rounds, so that noise of the machine affects all of them alike.

A benchmark prints one JSON record per figure and line, which run.py reads.
"""

import json
import os

# The tests set fewer rounds.
ROUNDS = int(os.environ.get("ZEUSM_BENCH_ROUNDS", "11"))


def report(group, name, unit, values):
    """Prints the figure `name` of `group`, with a value for each peer."""
    record = {"group": group, "name": name, "unit": unit, "values": values}
    print(json.dumps(record, ensure_ascii=False), flush=True)


def compare(group, name, functions, budget=0.01, rest=0):
    """Reports the median time of each peer's function over rounds of `budget` seconds, or of one call if that is longer, with a
    pause of `rest` seconds before each."""
    # Not at the top: a benchmark decides when zeusm is imported.
    from zeusm._bench.alternate import alternate, medians

    report(group, name, "s", medians(alternate(functions, ROUNDS, budget, rest)))


def size_name(size):
    """A size with its unit, such as "64 MiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size >>= 10
    return f"{size} GiB"
