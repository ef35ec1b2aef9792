"""Tests of foreign programs on the CPU runtime, one after the other: `foreign.py [--logs FOLDER] [--make COMMAND] PROGRAM...
[NAME=VALUE...]`.

Each is a target `test-PROGRAM` of make, which has a time limit, and whose output goes to a file of FOLDER. At the end stands a table
of the programs' versions, their tests and times. Fails if a test has, or a program has run none.
"""

import argparse
import glob
import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

#: The environment of each program, and the package whose version is shown.
PROGRAMS = {
    "jax": (".venv-jax", "jax-oneapi-plugin"),
    "llama": (".venv-llama", "cyllama-sycl"),
    "mpi": (".venv-mpi", "impi-rt"),
    "open3d": (".venv-open3d", "open3d-xpu"),
    "pyzes": (".venv-open3d", "pyzes"),
    "torch": (".venv-torch", "torch"),
    "umf": (".venv-open3d", "umf"),
}
# Intel's compiler takes minutes for some kernels, and many times that on a busy machine.
LIMIT = 3 * 3600
SUMMARY = re.compile(r"^=+ (.*\d (?:passed|failed|error).*?) =+$")
COUNTS = re.compile(r"(\d+) (passed|failed|error|xfailed|skipped)")
# A jobserver of make is closed to the recipes of its targets.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
}


def version(environment, package):
    distributions = importlib.metadata.distributions(
        name=package, path=glob.glob(f"{environment}/lib/python3*/site-packages")
    )
    return next((each.version for each in distributions), "not installed")


def ended(command, log):
    """The status of a command, with all its processes ended at the limit."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        try:
            return process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"no end after {LIMIT} s"


def counted(lines):
    """How many tests had each outcome, by pytest's closing line."""
    total = dict.fromkeys(("passed", "failed", "xfailed", "skipped"), 0)
    for line in lines:
        if match := SUMMARY.match(line):
            for number, outcome in COUNTS.findall(match[1]):
                total["failed" if outcome == "error" else outcome] += int(number)
    return total


def run(program, variables, options):
    """Runs one program's tests: its row of the table, and whether all is well."""
    print(f"{program} ...", flush=True)
    log = options.logs / f"test-{program}.log"
    begin = time.monotonic()
    command = [options.make, "--no-print-directory", f"test-{program}", *variables]
    status = ended(command, log)
    took = time.monotonic() - begin
    total = counted(log.read_text(errors="replace").splitlines())
    good = status == 0 and total["passed"] > 0 and not total["failed"]
    if not good:
        print(f"test-{program} failed ({status}): {log}", flush=True)
    environment, package = PROGRAMS[program]
    numbers = [total[name] for name in ("passed", "failed", "xfailed", "skipped")]
    return [package, version(environment, package), *numbers, f"{took:.0f} s"], good


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--make", default="make")
    parser.add_argument("words", nargs="+", metavar="PROGRAM|NAME=VALUE")
    options = parser.parse_args()
    programs = [word for word in options.words if "=" not in word]
    variables = [word for word in options.words if "=" in word]
    if unknown := set(programs) - set(PROGRAMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    options.logs.mkdir(parents=True, exist_ok=True)
    results = [run(program, variables, options) for program in programs]
    rows = [["program", "version", "passed", "failed", "known to fail", "skipped", "time"]]
    rows += [[str(cell) for cell in row] for row, _ in results]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(cells)} |")
    print(f"{sum(row[2] for row, _ in results)} passed, {sum(row[3] for row, _ in results)} failed")
    sys.exit(0 if all(good for _, good in results) else 1)


if __name__ == "__main__":
    main()
