"""Counts the instructions of zeusm's shortest calls, and compares them with the committed counts.

python tests/instructions [--write]

Only instructions in zeusm's own libraries count, so neither other processes nor another Python affects the result. Another
compiler does; the bound is then wider.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from zeusm import _zeusm

HERE = Path(__file__).parent
COUNTS = HERE / "counts.json"
LIBRARIES = (Path(_zeusm.__file__).name, "libze_loader.so.1")
REPEAT = 500
BOUND = 1.05
BOUND_OF_ANOTHER_COMPILER = 1.30


def count():
    """The instructions of each path in zeusm's libraries, for one call."""
    with tempfile.TemporaryDirectory() as folder:
        valgrind = [
            "valgrind",
            "--quiet",
            "--tool=callgrind",
            "--dump-before=getppid",
            "--dump-line=no",
            f"--callgrind-out-file={folder}/part",
        ]
        command = [*valgrind, sys.executable, HERE / "paths.py", str(REPEAT)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{run.stdout}{run.stderr}")
        names = run.stdout.splitlines()
        # Two parts for each path, which end at its calls of `getppid`; the second one has the repeated calls.
        parts = [Path(folder, f"part.{2 * index + 2}") for index in range(len(names))]
        return {
            name: round(sum(own_cost(part)[library] for library in LIBRARIES) / REPEAT)
            for name, part in zip(names, parts, strict=True)
        }


def own_cost(path):
    """The instructions of each library in a file of callgrind, without those of the functions that it calls."""
    found, names, library, is_call = collections.Counter(), {}, None, False
    for line in path.read_text().splitlines():
        if named := re.match(r"(c?)ob=\((\d+)\) ?(.*)", line):
            called, number, name = named.groups()
            names.setdefault(number, Path(name).name)
            library = library if called else names[number]
        elif line.startswith("calls="):
            is_call = True
        elif cost := re.match(r"[+*-]?\d* (\d+)$", line):
            # The line after `calls=` has the inclusive cost of the called function.
            found[library] += 0 if is_call else int(cost[1])
            is_call = False
    return found


def compiler():
    return subprocess.run(
        ["rustc", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def compare(counts, committed, bound):
    """Print a line for each path; return the paths over the bound."""
    over = []
    for name in {**committed, **counts}:
        before, now = committed.get(name, 0), counts.get(name, 0)
        is_over = not before or not now or now > before * bound
        over += [name] * is_over
        print(f"{name:<36}{before:>8}{now:>8}{'  OVER' * is_over}")
    return over


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the committed counts")
    arguments = parser.parse_args()
    counts = count()
    if arguments.write:
        COUNTS.write_text(json.dumps({"compiler": compiler(), "counts": counts}, indent=1) + "\n")
        return
    committed = json.loads(COUNTS.read_text())
    is_same = committed["compiler"] == compiler()
    bound = BOUND if is_same else BOUND_OF_ANOTHER_COMPILER
    print(f"instructions for a call: committed, and now; at most {bound:.2f} times as many")
    if over := compare(counts, committed["counts"], bound):
        sys.exit(
            f"More instructions than committed: {', '.join(over)}. If that is wanted: --write."
        )


if __name__ == "__main__":
    main()
