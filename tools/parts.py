"""Runs targets of make beside each other: `parts.py [--jobs N] [--logs FOLDER] [--make COMMAND] PART... [NAME=VALUE...]`.

PART:NEED:NEED is begun after the parts NEED, which stand before it, and fails with them.

Each part's output goes to a file of FOLDER. It is printed if the part fails; of one that passes, only how many tests passed,
which were skipped, and the time. At the end stand the 25 slowest tests of all parts, as pytest and the Rust tests report them, and
how many tests passed and failed.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SLOWEST = 25
# A jobserver of make is closed to the recipes of its targets; programs that find its name complain.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
}
PYTEST_TIME = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(\S.*)$")
PYTEST_SUMMARY = re.compile(r"^=+ (.*\d (?:passed|failed|error).*?) =+$")
RUST_PROGRAM = re.compile(r"^ +Running (?:unittests )?(\S+) \(")
RUST_TIME = re.compile(r"^test (\S+) .*<([\d.]+)s>$")
RUST_SUMMARY = re.compile(r"^test result: .* (\d+) passed; (\d+) failed")
COUNTS = re.compile(r"(\d+) (passed|failed|error)")

printing = threading.Lock()


def report(lines):
    """What to print of a part that passed."""
    summaries = [match[1] for line in lines if (match := PYTEST_SUMMARY.match(line))]
    if rust := counts(lines, RUST_SUMMARY)["passed"]:
        summaries.append(f"{rust} passed")
    skipped = [f"    {line}" for line in lines if line.startswith(("SKIPPED ", "XFAIL "))]
    return "; ".join(summaries), skipped


def counts(lines, *summaries):
    """How many tests passed and failed by the runners' closing lines."""
    total = {"passed": 0, "failed": 0, "error": 0}
    for line in lines:
        if any(summary.match(line) for summary in summaries):
            for number, outcome in COUNTS.findall(line):
                total[outcome] += int(number)
    return total


def times(part, lines):
    """The seconds of each test, with the names of its part and its program."""
    program = ""
    for line in lines:
        if match := RUST_PROGRAM.match(line):
            program = match[1]
        elif match := RUST_TIME.match(line):
            yield float(match[2]), f"{part}: {program} {match[1]}"
        elif match := PYTEST_TIME.match(line):
            yield float(match[1]), f"{part}: {match[2]}"


def duration(seconds):
    return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


def run(part, needs, command, log):
    """Runs one part after those that it needs; returns whether it passed, and the lines of its output."""
    if missing := [need for need, result in needs.items() if not result.result()[0]]:
        print(f"{part} was not run: {', '.join(missing)} failed", flush=True)
        return False, []
    begin = time.monotonic()
    with log.open("wb") as output:
        status = subprocess.call(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=ENVIRONMENT
        )
    text = log.read_text(errors="replace")
    took = duration(time.monotonic() - begin)
    lines = text.splitlines()
    with printing:
        if status == 0:
            summary, skipped = report(lines)
            print(f"{part} passed in {took}: {summary}", *skipped, sep="\n", flush=True)
        else:
            print(text, f"{part} failed ({status}) in {took}: {log}", sep="\n", flush=True)
    return status == 0, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--make", default="make")
    parser.add_argument("words", nargs="+", metavar="PART|NAME=VALUE")
    options = parser.parse_args()
    parts = [word.split(":") for word in options.words if "=" not in word]
    variables = [word for word in options.words if "=" in word]
    options.logs.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    results = {}
    # Lanes take the parts in their order, so that what a part waits for is at work or done.
    with ThreadPoolExecutor(options.jobs) as lanes:
        for part, *needs in parts:
            results[part] = lanes.submit(
                run,
                part,
                {need: results[need] for need in needs},
                [options.make, "--no-print-directory", part, *variables],
                options.logs / f"{part}.log",
            )
    tests = [test for part, result in results.items() for test in times(part, result.result()[1])]
    tests.sort(reverse=True)
    print(f"The {min(SLOWEST, len(tests))} slowest tests:")
    for seconds, name in tests[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name}")
    failed = [part for part, result in results.items() if not result.result()[0]]
    print(
        f"failed: {', '.join(failed)}"
        if failed
        else f"all parts passed in {duration(time.monotonic() - begin)}"
    )
    all_lines = [line for result in results.values() for line in result.result()[1]]
    total = counts(all_lines, PYTEST_SUMMARY, RUST_SUMMARY)
    print(f"{total['passed']} passed, {total['failed'] + total['error']} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
