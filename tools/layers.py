"""Checks that files use each other in one direction only: layers.py [FOLDER...]

A folder is a crate's `src`, a folder of test programs, or a Python package; without one, all are. An arrow leads from a file to the file that
defines what it names: in Rust by `use`, a path or a macro, in Python by an import, also inside functions. Names that a
`mod.rs` or `__init__.py` only passes on are followed to their file. Files of a circle cannot be understood, tested or
replaced separately, so a circle is an error. Rust's methods are not seen: their receiver's file is.
"""

import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = [
    "python/zeusm",
    "python/zeusm_dask",
    "python/zeusm_numba",
    "python/zeusm_ray",
    "python/zeusm_start",
]
CRATES = ["process/src", "src", "cpu/src", "python/src", "sys/src", "xe-sim/src"]
TESTS = ["tests", "cpu/tests"]

# The circles that are left: folder, files, reason. The list may only shrink: an entry that is no circle any more is an error.
ALLOWED = []

# Comments and literals, which may contain anything; a lifetime is none.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?c?r(#*)".*?"\1|"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\\w]|\\.[^']*)'",
    re.DOTALL,
)
VISIBILITY = re.compile(r"\bpub\s*\([^)]*\)")
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\)\]\s*(?:#\[[^\]]*\]\s*)*[^;{]*[;{]")
FILE = re.compile(
    r"(?:#\[path\s*=\s*\"([^\"]+)\"\]\s*)?(?:pub(?:\s*\([^)]*\))?\s+)?\bmod\s+(\w+)\s*;"
)
INLINE = re.compile(r"\bmod\s+(\w+)\s*\{")
USE = re.compile(r"(?:\bpub\s+)?\buse\s+([^;]+);")
ITEM = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static)\s+(\w+)")
MACRO = re.compile(r"\bmacro_rules!\s*(\w+)")
CALL = re.compile(r"\b(\w+)!\s*[(\[{]")
PATH = re.compile(r"(?<![\w:.])[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+")


def blank(text):
    """As many lines as the text has."""
    return "\n" * text.count("\n")


def end_of_block(text, start):
    """Where the block ends whose contents begin at `start`."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def cut(text, pattern):
    """The text without the items that the pattern begins, and each item with its match."""
    items = []
    while found := pattern.search(text):
        end = end_of_block(text, found.end()) if found[0].endswith("{") else found.end()
        items.append((found, blank(text[: found.end()]) + text[found.end() : end - 1]))
        text = text[: found.start()] + blank(text[found.start() : end]) + text[end:]
    return text, items


def leaves(tree):
    """The paths of a `use`, each with the name that it gets."""
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, name = (part.strip() for part in tree.partition(" as "))
        names = path.split("::")
        if names[-1] == "self":
            names.pop()
        yield names, name or names[-1]
        return
    depth, start = 0, 0
    rest = rest.rstrip()[:-1] + ","
    for place, character in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if part := rest[start:place].strip():
                yield from leaves(head + part)
            start = place + 1


@dataclass
class Module:
    """A Rust module: where it is, what it imports and defines, and the paths that it names, with their lines."""

    file: Path
    path: tuple
    imports: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)
    items: set = field(default_factory=set)
    paths: list = field(default_factory=list)


class Crate:
    """The modules below a crate's root."""

    def __init__(self, root):
        self.modules, self.macros, self.calls = {}, {}, []
        self.read(root, (), root.parent)

    def read(self, file, path, folder):
        """Reads a file, and the files of the modules that it declares."""
        source = file.read_text()
        text = OPAQUE.sub(lambda found: blank(found[0]), source)
        text, _ = cut(VISIBILITY.sub("pub", text), TEST_ITEM)
        for given, name in FILE.findall(source):
            if not re.search(rf"\bmod\s+{name}\s*;", text):
                continue  # In a comment, or a module of tests.
            below = folder / name
            places = (
                [file.parent / given] if given else [below.with_suffix(".rs"), below / "mod.rs"]
            )
            for place in places:
                if place.exists():
                    inside = place.parent if place.name == "mod.rs" else below
                    self.read(place, (*path, name), inside)
        for macro in MACRO.findall(text):
            self.macros[macro] = file
        self.calls += [
            (file, found[1], text.count("\n", 0, found.start()) + 1)
            for found in CALL.finditer(text)
        ]
        self.add(file, path, text)

    def add(self, file, path, text):
        """Adds one module, and those that are written inside of it."""
        while path in self.modules:  # Another system's file of that name.
            path = (*path[:-1], path[-1] + "'")
        module = self.modules[path] = Module(file, path)
        text, inside = cut(text, INLINE)
        for found, body in inside:
            self.add(file, (*path, found[1]), body)
        for found in USE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            for names, name in leaves(found[1]):
                if name == "*":
                    module.globs.append(names[:-1])
                else:
                    module.imports[name] = names
                module.paths.append((names, line))
        text = USE.sub(lambda found: blank(found[0]), text)
        for found in PATH.finditer(text):
            module.paths.append((found[0].split("::"), text.count("\n", 0, found.start()) + 1))
        while text != (text := re.sub(r"\{[^{}]*\}", "", text)):
            pass
        module.items.update(ITEM.findall(text), MACRO.findall(text))

    def find(self, module, names, seen=frozenset()):
        """The module that the path leads to, and whether it ends with a name that this module defines."""
        relative = True
        if names[0] == "crate":
            module, names, relative = self.modules[()], names[1:], False
        for place, name in enumerate(names):
            step = (module.path, name)
            if name in ("self", "super"):
                module = self.modules[module.path[:-1]] if name == "super" else module
            elif (*module.path, name) in self.modules:
                module = self.modules[*module.path, name]
            elif name in module.imports and step not in seen:
                return self.find(module, module.imports[name] + names[place + 1 :], seen | {step})
            elif name == "*":
                return module, bool(module.items)
            elif name in module.items:
                return module, True
            else:
                for glob in module.globs if step not in seen else ():
                    origin, _ = self.find(module, glob, seen | {step, (module.path, glob[0])})
                    if origin and (name in origin.items or name in origin.imports):
                        return self.find(origin, names[place:], seen | {step})
                return (None, False) if place == 0 and relative else (module, True)
        return module, False

    def arrows(self):
        """The files that each file uses, with one line each."""
        uses = {module.file: {} for module in self.modules.values()}
        for module in self.modules.values():
            for names, line in module.paths:
                target, defined = self.find(module, names)
                if names[0] == "crate" and names[1] in self.macros:
                    continue  # Exported macros are named as the root's; their calls are arrows below.
                if defined and target.file != module.file:
                    uses[module.file].setdefault(target.file, line)
        for file, macro, line in self.calls:
            if self.macros.get(macro, file) != file:
                uses[file].setdefault(self.macros[macro], line)
        return uses


def rust(folder):
    """The arrows of the crates whose roots lie in the folder: a library and a program, or test programs."""
    roots = [root for root in (folder / "lib.rs", folder / "main.rs") if root.exists()]
    uses = {}
    for root in roots or sorted([*folder.glob("*.rs"), *folder.glob("*/main.rs")]):
        for file, targets in Crate(root).arrows().items():
            uses.setdefault(file, {}).update(targets)
    return uses


def imports(tree):
    """The import statements of a file, other than those for a type checker only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        yield from imports(node)


def python(folder):
    """The arrows of a Python package."""
    files, passed, uses = {}, {}, {}
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file

    def named(node, package):
        if isinstance(node, ast.Import):
            return [(alias.name, "") for alias in node.names]
        parents = package.split(".")[: 1 - node.level or None] if node.level else []
        origin = ".".join([*parents, *filter(None, [node.module])])
        return [(origin, alias.name) for alias in node.names]

    found = []
    for name, file in files.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for node in imports(ast.parse(file.read_text())):
            for origin, leaf in named(node, package):
                found.append((file, origin, leaf, node.lineno))
                if file.name == "__init__.py":
                    passed[name, leaf] = origin
    for file, origin, leaf, line in found:
        while (origin, leaf) in passed and f"{origin}.{leaf}" not in files:
            origin = passed[origin, leaf]
        target = files.get(f"{origin}.{leaf}", files.get(origin))
        if target not in (None, file):
            uses.setdefault(file, {}).setdefault(target, line)
    return {file: uses.get(file, {}) for file in files.values()}


def arrows(folder):
    """The files that each file of the folder uses, with one line each."""
    return python(folder) if any(folder.glob("*.py")) else rust(folder)


def circles(uses):
    """The sets of files that reach each other (Tarjan), each in alphabetical order."""
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


def check(folder, allowed):
    """Prints the circles of the folder that are not allowed; returns their number, and the entries that are no circle."""
    wrong, stale = 0, {entry for entry in allowed if (ROOT / entry[0]).is_relative_to(folder)}
    uses = arrows(folder)
    for circle in circles(uses):
        entry = next((entry for entry in stale if {*circle} <= {*files_of(entry)}), None)
        if entry:
            stale.remove(entry)
            continue
        wrong += 1
        print(f"{folder.relative_to(ROOT)}: {len(circle)} files use each other:")
        for file in circle:
            for target, line in sorted(uses[file].items()):
                if target in circle:
                    print(f"    {file.relative_to(ROOT)}:{line} uses {target.relative_to(folder)}")
    for place, names, _ in stale:
        print(f"{place}: no circle any more, to be removed from tools/layers.py: {names}")
    return wrong + len(stale)


def files_of(entry):
    """The files of an entry of the list."""
    suffix = ".py" if entry[0].startswith("python/zeusm") else ".rs"
    return [ROOT / entry[0] / f"{name}{suffix}" for name in entry[1].split()]


def main():
    wrong = [check(ROOT / folder, ALLOWED) for folder in sys.argv[1:] or CRATES + PACKAGES + TESTS]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
