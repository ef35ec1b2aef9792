"""Times of several functions in alternating rounds, so that noise of the machine affects all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping

Function = Callable[[], object]


def seconds(function: Function, repeat: int) -> float:
    """The mean time of one call over `repeat` calls."""
    start = time.perf_counter()
    for _ in range(repeat):
        function()
    return (time.perf_counter() - start) / repeat


def repeats(functions: Mapping[str, Function], budget: float) -> dict[str, int]:
    """How often to call each function in a round of `budget` seconds: once if it takes longer."""
    once, repeat = {}, {}
    for peer, function in functions.items():
        function()
        once[peer] = seconds(function, 3)
        repeat[peer] = max(1, int(budget / max(once[peer], 1e-9)))
    if min(once.values()) > budget / 20:
        # Functions over large memory depend on the caches that the previous peer left, so each gets as many calls.
        repeat = dict.fromkeys(repeat, max(repeat.values()))
    return repeat


def alternate(
    functions: Mapping[str, Function], rounds: int, budget: float = 0.01, rest: float = 0
) -> dict[str, list[float]]:
    """The times of each function by rounds of `budget` seconds, or of one call if that is longer.

    `rest` is the pause before each round in seconds, for functions that leave threads spinning.
    """
    repeat = repeats(functions, budget)
    if max(repeat.values()) == 1:
        rounds = (rounds + 1) // 2  # Functions that exceed the budget get fewer rounds.
    times: dict[str, list[float]] = {peer: [] for peer in functions}
    order = list(functions)
    for _ in range(rounds):
        for peer in order:
            if rest:
                time.sleep(rest)
            times[peer].append(seconds(functions[peer], repeat[peer]))
        order.reverse()
    return times


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    return {peer: statistics.median(each) for peer, each in times.items()}
