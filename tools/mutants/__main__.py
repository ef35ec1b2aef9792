"""Mutants that no Rust test notices: `python tools/mutants FOLDER...`, of which `make mutants` is the usual call.

`cargo mutants --list` makes the mutants. All of them are built at once: each function has a copy of its body for each of its
mutants, and an environment variable chooses one. Each test runs once to see which mutants it reaches. Then each mutant runs those
tests that reach it, the shortest first, until one fails. So a mutant takes seconds, where a build of its own takes a minute.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source import Tree
from suite import Suite

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def listed(folders):
    """All mutants of the functions in these folders."""
    filters = [f"-f={folder}{end}" for folder in folders for end in ("/**/*.rs", ".rs")]
    command = ["cargo", "mutants", "--list", "--json", "--workspace", *filters]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    mutants = json.loads(output)
    return [it for it in mutants if it["function"] and "/tests" not in it["file"]]


def name(mutant):
    """What a mutant is called without its line, which changes with each edit of the file."""
    return re.sub(r":\d+:\d+:", ":", mutant["name"], count=1)


def sample(mutants, most):
    """The same `most` mutants in each run, as long as their lines do not move."""
    return sorted(mutants, key=lambda mutant: hashlib.sha256(mutant["name"].encode()).digest())[
        :most
    ]


def chosen(folders, most):
    """The sample of each folder, with the folder."""
    mutants = listed(folders)
    for folder in folders:
        of_folder = [it for it in mutants if it["file"].startswith((folder + "/", folder + ".rs"))]
        for mutant in sample(of_folder, most):
            yield mutant | {"folder": folder}


def report(mutants, outcomes):
    """Prints each mutant that is not caught, and the table; returns the exit status."""
    equivalent = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    counts = {}
    for mutant, outcome in zip(mutants, outcomes, strict=True):
        if outcome in ("missed", "unreached") and name(mutant) in equivalent:
            outcome = "equivalent"
        counts.setdefault(mutant["folder"], Counter())[outcome] += 1
        if outcome in ("missed", "unreached", "slow"):
            print(f"{outcome}: {mutant['name']}")
    columns = "caught", "slow", "missed", "unreached", "equivalent", "invalid"
    print("| folder |", " | ".join(columns), "| score |")
    print("| --- |" + " --- |" * (len(columns) + 1))
    enough = True
    for folder, count in counts.items():
        caught = count["caught"] + count["slow"]
        score = caught / max(1, caught + count["missed"] + count["unreached"])
        enough &= score >= 0.95
        cells = " | ".join(str(count[column]) for column in columns)
        print(f"| `{folder}` | {cells} | {score:.0%} |")
    return 0 if enough else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--sample", type=int, default=100, help="mutants of each folder")
    parser.add_argument("--only", default="", help="runs those whose names match this expression")
    parser.add_argument("--target", type=Path, default=ROOT / "target/mutants")
    parser.add_argument("--lanes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    mutants = list(chosen(options.folders, options.sample))
    tree = Tree(ROOT, options.target, mutants)
    tree.build()
    suite = Suite(tree, options.lanes)
    suite.find_reached()

    def outcome(number):
        found = "invalid" if number in tree.invalid else suite.outcome(number)
        print(f"{found}: {mutants[number]['name']}", file=sys.stderr, flush=True)
        return found

    numbers = [it for it, mutant in enumerate(mutants) if re.search(options.only, mutant["name"])]
    with ThreadPoolExecutor(options.lanes) as lanes:
        outcomes = list(lanes.map(outcome, numbers))
    return report([mutants[number] for number in numbers], outcomes)


if __name__ == "__main__":
    raise SystemExit(main())
