"""The tests of a tree with mutants: which test reaches which mutant, and whether one fails with it."""

import contextlib
import json
import os
import re
import select
import subprocess
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FAILED = re.compile(rb"^test \S+ .*FAILED", re.MULTILINE)
# A test that takes longer than these seconds is left out.
LONGEST = 60
# The bytes of the file that says which mutants a test reaches.
MOST = 1 << 14


class Suite:
    """All tests of a tree, by program."""

    def __init__(self, tree, lanes):
        self.tree, self.lanes = tree, lanes
        library = str(tree.target / "build/debug/deps/libzeusm_cpu.so")
        self.environment = os.environ | {
            "ZEUSM_CACHE_SIZE": "0",
            "ZEUSM_CPU_LIBRARY": library,
            "ZEUSM_CPU_STRICT": "1",
            "ZEUSM_TEST_MODE": "direct",
        }
        # For each mutant, for each program: the tests that reach it, each with its time.
        self.reaching = defaultdict(lambda: defaultdict(list))

    def find_reached(self):
        """Runs each test alone, without a mutant. What is known of a program that was not built again is read."""
        file = self.tree.target / "reached.json"
        known = json.loads(file.read_text()) if file.is_file() else {}
        with ThreadPoolExecutor(self.lanes) as lanes:
            for place in self.tree.programs:
                program = place[0]
                key = self.tree.numbering() + str(os.stat(program).st_mtime_ns)
                if known.get(program, {}).get("key") != key:
                    tests = self.listed(*place)
                    found = list(lanes.map(lambda test: self.reached(*place, test), tests))  # noqa: B023
                    known[program] = {"key": key, "tests": dict(zip(tests, found, strict=True))}
                    file.write_text(json.dumps(known))
                self.add(place, known[program]["tests"])

    def add(self, place, tests):
        """Adds the tests of a program, with the time and the mutants of each."""
        for test, (seconds, found) in tests.items():
            for number in found:
                self.reaching[number][place].append((seconds, test))

    def listed(self, program, folder):
        output = subprocess.run(
            [program, "--list", "--format=terse"],
            cwd=folder,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        return re.findall(r"^(\S+): test$", output, re.MULTILINE)

    def reached(self, program, folder, test):
        """How long a test takes, and the mutants that it reaches: none if it fails without one."""
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(MOST)
            start = time.monotonic()
            outcome = self.run(program, folder, [test], LONGEST, {"MUTANTS_REACHED": file.name})
            if outcome != "passed":
                print(f"without a mutant, {test} of {Path(program).name}: {outcome}")
                return 0, []
            seconds = time.monotonic() - start
            return seconds, [number for number, is_reached in enumerate(file.read()) if is_reached]

    def outcome(self, number):
        """`caught`, `slow` if a test takes much longer than it does, `missed`, or `unreached`."""
        programs = self.reaching[number].items()
        for place, tests in sorted(programs, key=lambda it: sum(seconds for seconds, _ in it[1])):
            limit = 20 + 5 * max(tests)[0]
            names = [name for _, name in tests]
            found = self.run(*place, names, limit, {"MUTANT": str(number)})
            if found != "passed":
                return "slow" if found == "slow" else "caught"
        return "missed" if programs else "unreached"

    def run(self, program, folder, tests, limit, variables):
        """Runs tests of a program to the first failure: `passed`, `failed`, or `slow` if for `limit` seconds no test ends."""
        process = subprocess.Popen(
            [program, "--exact", *tests],
            cwd=folder,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            found = first_failure(process, limit)
            return "failed" if found == "passed" and process.wait(limit) else found
        except subprocess.TimeoutExpired:
            return "slow"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


def first_failure(process, limit):
    """Reads what the tests print until one fails, none ends for `limit` seconds, or all have ended."""
    printed = b""
    while select.select([process.stdout], [], [], limit)[0]:
        part = os.read(process.stdout.fileno(), 1 << 16)
        printed += part
        if FAILED.search(printed):
            return "failed"
        if not part:
            return "passed"
    return "slow"
