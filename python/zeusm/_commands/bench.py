"""`zeusm bench`: what operations cost on this machine, beside dpctl's."""

import json
import os
import platform
import statistics
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

import zeusm
from zeusm._bench.alternate import alternate, medians
from zeusm._bench.cases import Case, cases, peers
from zeusm._commands.info import installed
from zeusm._commands.run import failure
from zeusm._pictures.text import duration

NAME = "bench"
HELP = (
    "Measure in about ten seconds what allocations, exchange, copies and launches cost on this machine, beside dpctl's: medians of "
    "alternating rounds, and their ratios."
)
ROUNDS = 9
Figure = dict[str, object]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, metavar="N", help=f"by default {ROUNDS}"
    )


def call(options: Namespace) -> int:
    if options.rounds < 1:
        return failure(NAME, f"--rounds is {options.rounds}; at least 1 is needed", 2)
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    try:
        found = peers()
        work = list(cases(found))
    except (zeusm.LevelZeroError, ValueError) as error:
        return failure(NAME, error, 1)
    start = time.monotonic()
    if sys.stderr.isatty():
        print(f"measuring {len(work)} operations", file=sys.stderr)
    figures = [measure(case, options.rounds) for case in work]
    result = {
        "machine": machine(load),
        "rounds": options.rounds,
        "seconds": round(time.monotonic() - start, 1),
        "figures": figures,
    }
    if options.json:
        json.dump(result, sys.stdout, indent=1)
        print()
    else:
        print(*table(result, has_dpctl=len(found) == 2), sep="\n")
    return 0


def measure(case: Case, rounds: int) -> Figure:
    """Medians in seconds, and the ratio of zeusm's time to the peer's: its median and quartiles over the rounds."""
    times = alternate(case.functions, rounds)
    ratio = None
    for peer in times.keys() - {"zeusm"}:
        each = [ours / theirs for ours, theirs in zip(times["zeusm"], times[peer], strict=True)]
        low, middle, high = statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
        ratio = {"peer": peer, "median": middle, "low": low, "high": high}
    return {
        "group": case.group,
        "name": case.name,
        "unit": "s",
        "values": medians(times),
        "ratio": ratio,
    }


def machine(load: float | None) -> dict[str, object]:
    runtime = zeusm.runtime()
    return {
        "processors": os.cpu_count(),
        "load_before": load,
        "python": platform.python_version(),
        "zeusm": zeusm.__version__,
        "dpctl": installed("dpctl"),
        "runtime": runtime.kind,
        "devices": list(runtime.device_names),
    }


def table(result: dict[str, object], *, has_dpctl: bool) -> Iterator[str]:
    """The lines of the report."""
    about, figures = result["machine"], result["figures"]
    assert isinstance(about, dict)
    assert isinstance(figures, list)
    yield f"zeusm {about['zeusm']} on {', '.join(about['devices'])}"
    group = None
    for figure in figures:
        if figure["group"] != group:
            group = figure["group"]
            yield ""
            yield f"{group:30}{'zeusm':>10}{'peer':>18}{'zeusm / peer':>16}"
        yield row(figure)
    yield ""
    yield f"A ratio below 1 is in favour of zeusm; in brackets the quartiles of {result['rounds']} rounds."
    if not has_dpctl:
        yield "dpctl is not installed or found no Level Zero device (see `zeusm doctor`), so there is no ratio."
    load = about["load_before"]  # Windows does not tell it.
    if load is not None and load > about["processors"] / 2:
        yield f"Other programs used the machine (load {load}), so the figures are unreliable."


def row(figure: Figure) -> str:
    values, ratio = figure["values"], figure["ratio"]
    assert isinstance(values, dict)
    line = f"  {figure['name']:28}{duration(values['zeusm'] * 1e9):>10}"
    if isinstance(ratio, dict):
        peer = f"{ratio['peer']} {duration(values[ratio['peer']] * 1e9)}"
        line += f"{peer:>18}{ratio['median']:>8.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
    return line
