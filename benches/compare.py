"""Measures peers side by side: their rounds alternate, so that whatever the machine does hits all of them."""

import statistics
import time


def seconds(function, repeat):
    """The time of one call, from `repeat` of them in a row."""
    start = time.perf_counter()
    for _ in range(repeat):
        function()
    return (time.perf_counter() - start) / repeat


def compare(name, functions, rounds=15, budget=0.02):
    """Prints the median time of each function, by its name, and the first one's ratio to each other one."""
    repeat = {}
    for peer, function in functions.items():
        function()
        repeat[peer] = max(1, int(budget / max(seconds(function, 1), 1e-9)))
    times = {peer: [] for peer in functions}
    for _ in range(rounds):
        for peer, function in functions.items():
            times[peer].append(seconds(function, repeat[peer]))
    medians = {peer: statistics.median(measured) for peer, measured in times.items()}
    first, *others = medians
    shown = "".join(f"{peer:>8} {medians[peer] * 1e6:12.2f} µs" for peer in medians)
    ratios = ", ".join(f"{medians[first] / medians[other]:.2f} of {other}" for other in others)
    print(f"{name:<34}{shown}   {ratios}")
    return medians
