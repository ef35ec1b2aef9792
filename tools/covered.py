"""Prints which lines and branches ran, by folder: covered.py FOLDER, with cargo's results and the `.profraw` files of the programs.

covered.py FOLDER src/queue lists those of a folder or file that did not run.

Source: the rustc book, "Instrumentation-based code coverage"; `llvm-cov export`.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def llvm():
    """The tools of the compiler: `rustup component add llvm-tools`."""
    sysroot = subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip()
    found = next(Path(sysroot).glob("lib/rustlib/*/bin/llvm-cov"), None)
    if found is None:
        sys.exit("llvm-cov is missing: rustup component add llvm-tools")
    return found.parent


def files(folder):
    """Each source file with its segments and branches."""
    profile = folder / "merged.profdata"
    merge = [llvm() / "llvm-profdata", "merge", "-sparse", "-failure-mode=all", "-o", profile]
    subprocess.run([*merge, *folder.glob("*.profraw")], check=True)
    programs = [
        file
        for file in [*folder.glob("debug/deps/*"), *folder.glob("release/*.so")]
        if file.is_file() and file.stat().st_mode & 0o100 and ".so" not in file.suffixes[1:]
    ]
    command = [llvm() / "llvm-cov", "export", "-skip-functions", "-instr-profile", profile]
    for program in programs:
        command += ["-object", program]
    report = json.loads(subprocess.check_output(command, stderr=subprocess.DEVNULL))
    return report["data"][0]["files"]


def lines(segments):
    """How often each line ran, which is what llvm-cov's own reports say of it.

    A line counts as often as the most frequent of its regions: the one that it begins in, and those that begin in it. A
    segment is its line, its column, the count, whether it has one, whether a region begins, and whether that is a gap.
    """
    counts = {}
    around = None
    line = 0
    for segment in [*segments, None]:
        end = segment[0] if segment else line + 1
        if around:
            counts.update((between, around[2]) for between in range(line + 1, end) if around[3])
        if segment is None:
            break
        if end != line and around and around[3]:
            counts[end] = around[2]
        line = end
        if segment[3] and segment[4] and not segment[5]:
            counts[line] = max(counts.get(line, 0), segment[2])
        around = segment
    return counts


def branches(entries):
    """How often each branch ran, by its place and outcome. Each instance of a generic function, and each program with the
    file, has entries of its own."""
    counts = Counter()
    for *place, taken, not_taken in (entry[:6] for entry in entries):
        counts[(*place, True)] += taken
        counts[(*place, False)] += not_taken
    return counts


def product_file(file):
    """The path of a product file in the repository; nothing for other files."""
    if not file.is_relative_to(ROOT):
        return None
    path = file.relative_to(ROOT)
    if "src" not in path.parts or "tests" in path.parts or path.name == "tests.rs":
        return None
    return path


def before_tests(path):
    """The lines of a file before the module with its tests."""
    text = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return text[: text.index("mod tests {")] if "mod tests {" in text else text


def folder_of(path):
    """The folder below the crate's `src` that a file is in."""
    end = path.parts.index("src") + 1
    return "/".join(path.parts[: min(end + 1, len(path.parts) - 1)])


def print_table(counts):
    print("| Folder | Lines | % | Branches | % |\n| --- | --- | --- | --- | --- |")
    sums = {}
    for path, counters in counts.items():
        folder = folder_of(path)
        for row in (folder, f"{folder[: folder.index('src') + 3]} (all)"):
            sums.setdefault(row, [Counter(), Counter()])
            for total, counter in zip(sums[row], counters, strict=True):
                total["count"] += len(counter)
                total["ran"] += sum(map(bool, counter.values()))
    for row, totals in sorted(sums.items()):
        columns = [
            f"{total['count']} | {100 * total['ran'] / total['count']:.0f}"
            if total["count"]
            else "0 |"
            for total in totals
        ]
        print(f"| `{row}` |", " | ".join(columns), "|")


def print_rest(counts, below):
    for path, (of_lines, of_branches) in sorted(counts.items()):
        if not path.is_relative_to(below):
            continue
        text = before_tests(path)
        missed = {line: "did not run" for line, count in of_lines.items() if not count}
        for (line, column, *_, outcome), count in of_branches.items():
            if not count and line not in missed:
                missed[line] = f"column {column} was never {outcome}".lower()
        for line, why in sorted(missed.items()):
            print(f"{path}:{line}: {text[line - 1].strip()}    <- {why}")


def main():
    counts = {}
    for file in files(Path(sys.argv[1]).resolve()):
        path = product_file(Path(file["filename"]))
        if path:
            end = len(before_tests(path))
            of_lines = {line: n for line, n in lines(file["segments"]).items() if line <= end}
            of_branches = {at: n for at, n in branches(file["branches"]).items() if at[0] <= end}
            counts[path] = (of_lines, of_branches)
    if len(sys.argv) > 2:
        print_rest(counts, sys.argv[2])
    else:
        print_table(counts)


if __name__ == "__main__":
    main()
