"""`zeusm doctor`: the way from the GPU to a kernel, a line for each step."""

import dataclasses
import json
import sys
from argparse import ArgumentParser, Namespace

from zeusm._doctor import Finding, Machine, State, examine

NAME = "doctor"
HELP = (
    "Go through the way from the GPU to a kernel, and name the command that mends what is wrong; the exit status is 1 "
    "if something is."
)
MARKS = {State.OK: "ok", State.ABSENT: "--", State.NOTE: "note", State.WRONG: "WRONG"}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print the findings as JSON, for issues"
    )


def call(options: Namespace) -> int:
    findings = []
    for finding in examine(Machine()):
        findings.append(finding)
        if not options.json:
            report(finding)
    if options.json:
        json.dump([dataclasses.asdict(finding) for finding in findings], sys.stdout, indent=2)
        print()
    return int(any(finding.state is State.WRONG for finding in findings))


def report(finding: Finding) -> None:
    """Print a line, and the command below it."""
    print(f"{MARKS[finding.state]:6}{finding.step:18} {finding.text}", flush=True)
    if finding.remedy and finding.state is not State.OK:
        print(f"{'':24} -> {finding.remedy}", flush=True)
