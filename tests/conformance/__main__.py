"""The core of the official conformance tests on the CPU runtime, compared with the committed list of those that do not pass.

python tests/conformance FOLDER --runtime LIBRARY --opencl LIBRARY [--areas NAME...] [--tests PATTERN] [--whole] [--output FOLDER]

FOLDER has the sources `level-zero-tests` and `level-zero`, a loader; both are built there. The programs run one after the other:
those of IPC share names of sockets, and kernels use all processors.
"""

import argparse
import os
import subprocess
import time
from fnmatch import fnmatchcase
from pathlib import Path

import googletest
from areas import EMPTY, area
from known import Known
from processes import GOOD
from sources import Tests
from table import Table

REAL_TIME = ("chrt", "--fifo", "1")


def may_have_priority():
    """Whether this user may give a process real-time priority."""
    return not subprocess.run([*REAL_TIME, "true"], capture_output=True).returncode


def environment(tests, options):
    """The variables of a program that runs on the CPU runtime behind the loader that was built."""
    variables = {
        "LD_LIBRARY_PATH": str(tests.prefix / "lib"),
        "ZE_ENABLE_ALT_DRIVERS": str(options.runtime.resolve()),
        "ZEUSM_OPENCL_LIBRARY": str(options.opencl.resolve()),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ZE_")}
    return kept | variables


def chosen(name, tests, known, options):
    """The tests to run: those that are too much work only if all are asked for."""
    named = [test for test in tests if fnmatchcase(test, options.tests)]
    return [test for test in named if options.whole or not known.is_skipped(name, test)]


def check(path, variables, table, options):
    """Run one program, and add its row to the table."""
    name, start = path.name.removeprefix("test_"), time.monotonic()
    needs = area(name)
    variables = variables | needs.variables
    every = googletest.tests(path, variables)
    names = chosen(name, every, table.known, options)
    prefix = REAL_TIME if needs.is_timed and options.priority else ()
    with open(options.output / f"{name}.log", "wb") as log:
        how = (needs.limit, variables, prefix, log)
        results = dict(googletest.run(path, names, *how))
        if needs.is_timed:
            # The system may have interrupted them: it throttles processes of real-time priority.
            again = [name for name in names if results.get(name) not in GOOD]
            results |= dict(googletest.run(path, again, *how))
    table.add(name, every, results, time.monotonic() - start)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--opencl", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("target/conformance"))
    parser.add_argument("--areas", nargs="*", default=[])
    parser.add_argument("--tests", default="*", help="a pattern of their names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build; 0: none")
    parser.add_argument("--whole", action="store_true", help="also what is too much work")
    return parser.parse_args()


def programs(tests, areas):
    """The programs of these areas, or all."""
    files = sorted(tests.programs.glob("test_*"))
    every = {path.name.removeprefix("test_"): path for path in files if not path.suffix}
    every.pop(EMPTY, None)
    if unknown := set(areas) - set(every):
        raise SystemExit(f"no area: {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    return [every[name] for name in areas or every]


def main():
    options = parse()
    tests = Tests(options.folder)
    if options.jobs:
        tests.build(options.jobs, options.areas)
    options.output.mkdir(parents=True, exist_ok=True)
    options.priority = may_have_priority()
    variables, table = environment(tests, options), Table(Known(), options.output)
    for path in programs(tests, options.areas):
        check(path, variables, table, options)
    notes = [tests.versions()]
    if not options.priority:
        notes.append(
            "Tests that measure times ran without real-time priority, which this user may not give."
        )
    table.end(*notes)


if __name__ == "__main__":
    main()
