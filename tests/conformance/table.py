"""The table of the areas that ran, and what differs from the committed list."""

import json
import sys

from processes import GOOD, PASSED, SKIPPED

COLUMNS = ("area", "tests", "run", "passed", "skipped", "known", "new", "obsolete", "seconds")


class Table:
    """A row for each area, with the results in a file of the folder."""

    def __init__(self, known, folder):
        self.known, self.folder = known, folder
        self.rows, self.differences = [], []

    def add(self, area, every, results, seconds):
        """Compare an area's results with the list, and print its row and what differs. `every` has the names of all tests."""
        (self.folder / f"{area}.json").write_text(json.dumps(results, indent=1) + "\n")
        new, obsolete = self.known.judge(area, results)
        stale = self.known.stale(area, every)
        counts = list(results.values())
        row = {
            "area": area,
            "tests": len(every),
            "run": len(results),
            "passed": counts.count(PASSED),
            "skipped": counts.count(SKIPPED),
            "known": sum(result not in GOOD for result in counts) - len(new),
            "new": len(new),
            "obsolete": len(obsolete) + len(stale),
            "seconds": round(seconds),
        }
        lines = [f"new: {area} {test} {result}" for test, result in new.items()]
        lines += [f"obsolete: {area} {test} does not fail" for test in obsolete]
        lines += [f"obsolete: {area} {pattern} names no test" for pattern in stale]
        print(_line(row), *lines, sep="\n", flush=True)
        self.rows.append(row)
        self.differences += lines

    def end(self, *notes):
        """Print the whole table below the notes; a difference ends the program with an error."""
        total = {name: sum(row[name] for row in self.rows) for name in COLUMNS[1:]}
        print("", *notes, _line({name: name for name in COLUMNS}), sep="\n")
        print(*map(_line, self.rows), _line({"area": "all", **total}), sep="\n")
        if self.differences:
            sys.exit(f"{len(self.differences)} differences from the list, which are named above.")


def _line(row):
    return f"{row['area']:<24}" + "".join(f"{row[name]:>9}" for name in COLUMNS[1:])
