"""`zeusm doctor`: the way from the GPU to a kernel, a line for each step."""

import dataclasses
import json
import os
import shutil
import sys
import textwrap
from argparse import ArgumentParser, Namespace

from zeusm._doctor import THIS_MACHINE, Finding, State, examine

NAME = "doctor"
HELP = (
    "Go through the way from the GPU to a kernel, and name the command that mends what is wrong; the exit status is 1 "
    "if something is."
)
MARKS = {State.OK: "ok", State.ABSENT: "--", State.NOTE: "note", State.WRONG: "WRONG"}
#: Of terminals: green, dim, yellow, red.
COLOURS = {State.OK: 32, State.ABSENT: 2, State.NOTE: 33, State.WRONG: 31}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print the findings as JSON, for issues"
    )


def call(options: Namespace) -> int:
    findings = []
    for finding in examine(THIS_MACHINE()):
        findings.append(finding)
        if not options.json:
            report(finding)
    if options.json:
        json.dump([dataclasses.asdict(finding) for finding in findings], sys.stdout, indent=2)
        print()
    return int(any(finding.state is State.WRONG for finding in findings))


def report(finding: Finding) -> None:
    """Print a line, on a terminal in colour and of its width, and the command below it, which is copied in one piece."""
    mark, text = f"{MARKS[finding.state]:6}", finding.text
    if sys.stdout.isatty():
        room = max(shutil.get_terminal_size().columns - 25, 20)
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        text = f"\n{'':25}".join(lines)
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb":
            mark = f"\x1b[{COLOURS[finding.state]}m{mark}\x1b[0m"
    print(f"{mark}{finding.step:18} {text}", flush=True)
    if finding.remedy and finding.state is not State.OK:
        print(f"{'':24} -> {finding.remedy}", flush=True)
