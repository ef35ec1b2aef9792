"""The committed list of tests that do not pass, and what differs from it."""

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from googletest import DIED, FAILED, HUNG

COMMITTED = Path(__file__).with_name("known.toml")
# The last ones are not run unless all are asked for.
CLASSES = (
    "defect of the test",
    "impossible on a CPU",
    "not built",
    "not implemented",
    "too much work for the limit",
)
BAD = {FAILED, DIED, HUNG}


class Entry:
    """Tests of an area that do not pass for one reason."""

    def __init__(self, area, tests, reason, may_pass=False, **classes):
        self.area, self.tests, self.reason, self.may_pass = area, tests, reason, may_pass
        self.kind = classes["class"]
        if self.kind not in CLASSES or not reason or not tests:
            raise SystemExit(
                f"{COMMITTED.name}: a class, tests and a reason are missing for {area} {tests}"
            )

    def names(self, test):
        return any(fnmatchcase(test, pattern) for pattern in self.tests)


class Known:
    """The list."""

    def __init__(self, path=COMMITTED):
        self.entries = [Entry(**entry) for entry in tomllib.loads(path.read_text())["known"]]

    def find(self, area, test):
        """The entry of a test, or `None`."""
        found = [entry for entry in self.entries if entry.area == area and entry.names(test)]
        return found[0] if found else None

    def stale(self, area, tests):
        """The patterns of an area that are no test of it any more."""
        return [
            pattern
            for entry in self.entries
            if entry.area == area
            for pattern in entry.tests
            if not any(fnmatchcase(test, pattern) for test in tests)
        ]

    def is_skipped(self, area, test):
        entry = self.find(area, test)
        return entry is not None and entry.kind == CLASSES[-1]

    def judge(self, area, results):
        """The results that the list does not have, and the tests of the list that do not fail."""
        new, obsolete = {}, []
        for test, result in results.items():
            entry = self.find(area, test)
            if result in BAD and entry is None:
                new[test] = result
            elif result not in BAD and entry and not entry.may_pass:
                obsolete.append(test)
        return new, obsolete
