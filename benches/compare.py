"""Compares peers in alternating rounds, so that noise of the machine affects all of them alike.

A benchmark prints one JSON record per figure and line, which run.py reads.
"""

import json
import os
import statistics
import time

# The tests set fewer rounds.
ROUNDS = int(os.environ.get("ZEUSM_BENCH_ROUNDS", "11"))


def report(group, name, unit, values):
    """Prints the figure `name` of `group`, with a value for each peer."""
    record = {"group": group, "name": name, "unit": unit, "values": values}
    print(json.dumps(record, ensure_ascii=False), flush=True)


def seconds(function, repeat):
    """The mean time of one call over `repeat` calls."""
    start = time.perf_counter()
    for _ in range(repeat):
        function()
    return (time.perf_counter() - start) / repeat


def compare(group, name, functions, budget=0.01):
    """Reports the median time of each peer's function over rounds of `budget` seconds, or of one call if that is longer."""
    once, repeat = {}, {}
    for peer, function in functions.items():
        function()
        once[peer] = seconds(function, 3)
        repeat[peer] = max(1, int(budget / max(once[peer], 1e-9)))
    if min(once.values()) > budget / 20:
        # Functions over large memory depend on the caches that the previous peer left, so each gets as many calls.
        repeat = dict.fromkeys(repeat, max(repeat.values()))
    times = {peer: [] for peer in functions}
    order = list(functions)
    # Functions that exceed the budget get fewer rounds.
    rounds = ROUNDS if max(repeat.values()) > 1 else (ROUNDS + 1) // 2
    for _ in range(rounds):
        for peer in order:
            times[peer].append(seconds(functions[peer], repeat[peer]))
        order.reverse()
    report(group, name, "s", {peer: statistics.median(each) for peer, each in times.items()})


def size_name(size):
    """A size with its unit, such as "64 MiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size >>= 10
    return f"{size} GiB"
