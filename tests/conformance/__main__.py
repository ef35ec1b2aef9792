"""The core of the official conformance tests on the CPU runtime, compared with the committed list of those that do not pass.

python tests/conformance FOLDER --runtime LIBRARY --opencl LIBRARY [--areas NAME...] [--tests PATTERN] [--whole] [--output FOLDER]

FOLDER has the sources `level-zero-tests` and `level-zero`, a loader; both are built there. The programs run one after the other:
those of IPC share names of sockets, and kernels use all processors.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

import googletest
from areas import EMPTY, area
from known import BAD, Known
from sources import Tests

COLUMNS = ("area", "tests", "run", "passed", "skipped", "known", "new", "obsolete", "seconds")
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


def check(path, variables, known, options):
    """Run one program; return its row of the table, and the lines that say what differs from the list."""
    name, start = path.name.removeprefix("test_"), time.monotonic()
    needs = area(name)
    variables = variables | needs.variables
    every = googletest.tests(path, variables)
    names = chosen(name, every, known, options)
    prefix = REAL_TIME if needs.is_timed and options.priority else ()
    with open(options.output / f"{name}.log", "wb") as log:
        how = (needs.limit, variables, prefix, log)
        results = dict(googletest.run(path, names, *how))
        if needs.is_timed:
            # The system may have interrupted them: it throttles processes of real-time priority.
            again = [name for name in names if results.get(name) in BAD]
            results |= dict(googletest.run(path, again, *how))
    (options.output / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    new, obsolete = known.judge(name, results)
    stale = known.stale(name, every)
    counts = list(results.values())
    bad = sum(result in BAD for result in counts)
    row = {
        "area": name,
        "tests": len(every),
        "run": len(results),
        "passed": counts.count(googletest.PASSED),
        "skipped": counts.count(googletest.SKIPPED),
        "known": bad - len(new),
        "new": len(new),
        "obsolete": len(obsolete) + len(stale),
        "seconds": round(time.monotonic() - start),
    }
    lines = [f"new: {name} {test} {result}" for test, result in new.items()]
    lines += [f"obsolete: {name} {test} does not fail" for test in obsolete]
    lines += [f"obsolete: {name} {pattern} names no test" for pattern in stale]
    return row, lines


def line(row):
    return f"{row['area']:<24}" + "".join(f"{row[name]:>9}" for name in COLUMNS[1:])


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
    tests, known = Tests(options.folder), Known()
    if options.jobs:
        tests.build(options.jobs, options.areas)
    options.output.mkdir(parents=True, exist_ok=True)
    options.priority = may_have_priority()
    variables, rows, differences = environment(tests, options), [], []
    for path in programs(tests, options.areas):
        row, lines = check(path, variables, known, options)
        print(line(row), *lines, sep="\n", flush=True)
        rows, differences = [*rows, row], differences + lines
    total = {name: sum(row[name] for row in rows) for name in COLUMNS[1:]}
    print("", tests.versions(), line({name: name for name in COLUMNS}), sep="\n")
    print(*map(line, rows), line({"area": "all", **total}), sep="\n")
    if not options.priority:
        print(
            "Tests that measure times ran without real-time priority, which this user may not give."
        )
    if differences:
        sys.exit(f"{len(differences)} differences from the list, which are named above.")


if __name__ == "__main__":
    main()
