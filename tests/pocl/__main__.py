"""Tests of kernels over PoCL, a second OpenCL runtime, compared with the committed list of those that do not pass.

python tests/pocl ROOT [--areas NAME...] [--tests PATTERN] [--whole] [--output FOLDER]

ROOT is a Debian root that has PoCL. The environments and the runtime are those of this project, built here.
"""

import argparse
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "conformance"))
from areas import AREAS
from known import Known
from root import PROJECT, Root
from table import Table

# Seconds for one test. A kernel that takes Intel's compiler a second takes PoCL's several.
LIMIT = 200


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--output", type=Path, default=PROJECT / "target/pocl")
    parser.add_argument("--areas", nargs="*", choices=AREAS, default=list(AREAS))
    parser.add_argument("--tests", default="*", help="a pattern of their names")
    parser.add_argument("--whole", action="store_true", help="also what is too much work")
    return parser.parse_args()


def check(area, root, table, options):
    """Run an area, and add its row to the table."""
    start, tests = time.monotonic(), AREAS[area]
    every = tests.prepare(root)
    names = [name for name in every if fnmatchcase(name, options.tests)]
    names = [name for name in names if options.whole or not table.known.is_skipped(area, name)]
    with open(options.output / f"{area}.log", "wb", buffering=0) as log:
        results = dict(tests.run(names, LIMIT, log))
    table.add(area, every, results, time.monotonic() - start)


def main():
    options = parse()
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    root = Root(options.root, options.output / "modules")
    table = Table(Known(Path(__file__).with_name("known.toml")), options.output)
    for area in options.areas:
        check(area, root, table, options)
    table.end(root.version())


if __name__ == "__main__":
    main()
