"""Measures peers side by side: their rounds alternate, so that whatever the machine does hits all of them.

A program that measures prints a record for each figure, as a line of JSON; run.py reads them.
"""

import json
import os
import statistics
import time

# A run to see whether it works needs few.
ROUNDS = int(os.environ.get("ZEUSM_BENCH_ROUNDS", "11"))


def report(group, name, unit, values):
    """Prints the figure `name` of `group`: a value for each peer."""
    record = {"group": group, "name": name, "unit": unit, "values": values}
    print(json.dumps(record, ensure_ascii=False), flush=True)


def seconds(function, repeat):
    """The time of one call, from `repeat` of them in a row."""
    start = time.perf_counter()
    for _ in range(repeat):
        function()
    return (time.perf_counter() - start) / repeat


def compare(group, name, functions, budget=0.01):
    """Reports the median time of each function, by its peer's name, from rounds of `budget` seconds or one call."""
    once, repeat = {}, {}
    for peer, function in functions.items():
        function()
        once[peer] = seconds(function, 3)
        repeat[peer] = max(1, int(budget / max(once[peer], 1e-9)))
    if min(once.values()) > budget / 20:
        # What goes through much memory finds the caches as the peer before left them: as many calls of each, then.
        repeat = dict.fromkeys(repeat, max(repeat.values()))
    times = {peer: [] for peer in functions}
    order = list(functions)
    # What takes much longer than its budget has few rounds.
    rounds = ROUNDS if max(repeat.values()) > 1 else (ROUNDS + 1) // 2
    for _ in range(rounds):
        for peer in order:
            times[peer].append(seconds(functions[peer], repeat[peer]))
        order.reverse()
    report(group, name, "s", {peer: statistics.median(each) for peer, each in times.items()})


def size_name(size):
    """As in "64 MiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size >>= 10
    return f"{size} GiB"
