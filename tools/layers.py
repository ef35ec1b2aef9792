"""Checks that the modules of crates use each other in one direction only: layers.py FOLDER...

A module is a file or folder directly under a crate's `src`. An arrow leads from a module to each module that it names
with `crate::` or `super::`; tests are ignored. Modules of a cycle cannot be understood, tested or replaced separately, so
a cycle is an error. The use of a name that only the crate's root re-exports is an error too.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOORS = {"lib.rs", "main.rs"}
TESTS = {"tests", "tests.rs"}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\)\]\s*(?:#\[[^\]]*\]\s*)*mod\s+\w+\s*\{")
PATH = re.compile(r"\b(crate|(?:super::)*super)::")
GROUP = re.compile(r"[{},]|[^{},]+")


def without_tests(text):
    """The source without comments, strings and test modules."""
    text = STRING.sub('""', COMMENT.sub("", text))
    while found := TEST_MODULE.search(text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[end:]
    return text


def first_names(text, start):
    """The first names after `crate::` or `super::`: one, or those of a group."""
    if text[start] != "{":
        name = re.match(r"\w+", text[start:])
        return [name[0]] if name else []
    depth, names, fresh = 0, [], False
    for token in GROUP.findall(text[start:]):
        if token == "{":
            depth += 1
            fresh = depth == 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                return names
        elif token == ",":
            fresh = depth == 1
        elif fresh and (name := re.match(r"\s*(\w+)", token)):
            names.append(name[1])
            fresh = False
    return names


def modules(crate):
    """The files of each module."""
    found = {}
    for path in sorted(crate.iterdir()):
        if path.name in DOORS or path.name in TESTS:
            continue
        if path.is_dir():
            files = [
                file
                for file in sorted(path.rglob("*.rs"))
                if not TESTS & {*file.relative_to(path).parts}
            ]
            if files:
                found.setdefault(path.name, []).extend(files)
        elif path.suffix == ".rs":
            found.setdefault(path.stem, []).append(path)
    return found


def arrows(crate, found):
    """The modules that each module uses, with one location each, and the uses of names that only the root re-exports."""
    uses, doors = {name: {} for name in found}, []
    macros = {}
    for name, files in found.items():
        for file in files:
            for macro in re.findall(r"macro_rules!\s*(\w+)", without_tests(file.read_text())):
                macros[macro] = name
    for name, files in found.items():
        for file in files:
            text = without_tests(file.read_text())
            inside = list(file.relative_to(crate).with_suffix("").parts)
            if inside[-1] == "mod":
                inside.pop()
            for match in PATH.finditer(text):
                base = [] if match[1] == "crate" else inside[: -match[1].count("super")]
                for first in first_names(text, match.end()):
                    target = base[0] if base else first
                    place = f"{file.relative_to(ROOT)} ({match[1]}::{first})"
                    if target in found and target != name:
                        uses[name].setdefault(target, place)
                    elif not base and target not in found and target not in macros:
                        doors.append(place)
            for macro in re.findall(r"\b(\w+)!\s*[\(\[{]", text):
                if macros.get(macro, name) != name:
                    uses[name].setdefault(macros[macro], f"{file.relative_to(ROOT)} ({macro}!)")
    return uses, doors


def cycles(uses):
    """The sets of modules that reach each other (Tarjan), each in alphabetical order."""
    index, low, stack, found = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in uses[name]:
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1:
                found.append(sorted(component))

    for name in uses:
        if name not in index:
            visit(name)
    return found


def main():
    wrong = 0
    for crate in (ROOT / folder for folder in sys.argv[1:]):
        found = modules(crate)
        uses, doors = arrows(crate, found)
        for cycle in cycles(uses):
            wrong += 1
            print(
                f"{crate.relative_to(ROOT)}: {len(cycle)} modules use each other: {', '.join(cycle)}"
            )
            for name in cycle:
                for target, place in sorted(uses[name].items()):
                    if target in cycle:
                        print(f"    {name} -> {target}: {place}")
        for place in doors:
            wrong += 1
            print(f"{place}: names inside the crate come from their module, not from its root")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
