"""The committed list of tests that do not pass, and what differs from it."""

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from processes import GOOD

COMMITTED = Path(__file__).with_name("known.toml")
# What has this class is not run unless all is asked for.
TOO_MUCH = "too much work for the limit"


class Entry:
    """Tests of an area that do not pass for one reason."""

    def __init__(self, area, tests, reason, may_pass=False, **classes):
        self.area, self.tests, self.reason, self.may_pass = area, tests, reason, may_pass
        self.kind = classes["class"]

    def names(self, test):
        return any(is_named(test, pattern) for pattern in self.tests)


def is_named(test, pattern):
    """Whether the pattern is of the test's name, or the name itself, which may have brackets."""
    return test == pattern or fnmatchcase(test, pattern)


class Known:
    """The list."""

    def __init__(self, path=COMMITTED):
        text = tomllib.loads(path.read_text())
        self.classes = text["classes"]
        self.entries = [Entry(**entry) for entry in text["known"]]
        for entry in self.entries:
            if entry.kind not in self.classes or not entry.reason or not entry.tests:
                raise SystemExit(
                    f"{path}: a class, tests or a reason are missing for {entry.area} {entry.tests}"
                )

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
            if not any(is_named(test, pattern) for test in tests)
        ]

    def is_skipped(self, area, test):
        entry = self.find(area, test)
        return entry is not None and entry.kind == TOO_MUCH

    def judge(self, area, results):
        """The results that the list does not have, and the tests of the list that do not fail."""
        new, obsolete = {}, []
        for test, result in results.items():
            entry = self.find(area, test)
            is_good = result in GOOD
            # A result may tell the class itself.
            is_of_another = entry is None or (result in self.classes and result != entry.kind)
            if not is_good and is_of_another:
                new[test] = result
            elif is_good and entry and not entry.may_pass:
                obsolete.append(test)
        return new, obsolete
