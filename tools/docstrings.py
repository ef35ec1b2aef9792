"""Docstrings for the type stub in a wheel: editors show those of the stub, and the sources have them in Rust only.

They are read from the built module, which is imported alone, in a process of the Python that it is for:
python docstrings.py MODULE prints them as JSON.
"""

import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import machinery, util
from pathlib import Path
from types import WrapperDescriptorType

STUB = "zeusm/_zeusm.pyi"
MODULE = re.compile(r"zeusm/_zeusm\.(?:abi3|cpython-3(\d+t?)-[\w-]+)\.so")


def own(value, name):
    """The docstring of an object, None if Python has made it."""
    is_pythons = isinstance(value, WrapperDescriptorType) or name == "__new__"
    text = None if is_pythons else value.__doc__
    return text if text != getattr(object, name, None).__doc__ else None


def read(path):
    """The docstrings of a module's functions, classes and members, by their names with dots."""
    loader = machinery.ExtensionFileLoader("zeusm._zeusm", path)
    module = util.module_from_spec(
        util.spec_from_file_location("zeusm._zeusm", path, loader=loader)
    )
    loader.exec_module(module)
    found = {}
    for name, thing in vars(module).items():
        if callable(thing):
            found[name] = own(thing, name)
        if isinstance(thing, type):
            for member in dir(thing):
                found[f"{name}.{member}"] = own(getattr(thing, member), member)
    return {name: inspect.cleandoc(text) for name, text in found.items() if text}


def quoted(text, indent):
    """A docstring as source code."""
    text = text.replace("\\", "\\\\").replace('"""', r"\"\"\"")
    end = "\n" if "\n" in text or text.endswith('"') else ""
    lines = f'"""{text}{end}"""'.splitlines()
    return "\n".join(indent + line if line else "" for line in lines)


def members(tree):
    """The statements of a stub that a docstring can describe, each with the names that may have it: the members of a class that the
    module lacks have the longest of the docstrings in the classes below it."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    heirs = {}
    for node in classes:
        for base in node.bases:
            heirs.setdefault(ast.unparse(base), []).append(node.name)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node, [node.name]
    for owner in classes:
        for node in owner.body:
            name = getattr(node, "name", None) or ast.unparse(getattr(node, "target", node))
            yield node, [f"{each}.{name}" for each in (owner.name, *heirs.get(owner.name, []))]


def documented(stub, texts):
    """The text of a stub with docstrings."""
    lines = stub.splitlines()
    tree = ast.parse(stub)
    for node, names in sorted(members(tree), key=lambda each: -each[0].lineno):
        text = texts.get(names[0]) or max((texts.get(name, "") for name in names), key=len)
        if not text:
            continue
        if isinstance(node, ast.AnnAssign):
            lines.insert(node.end_lineno, quoted(text, " " * node.col_offset))
            continue
        first = node.body[0]
        docstring = quoted(text, " " * (node.col_offset + 4))
        if ast.unparse(first) == "...":
            head = lines[first.lineno - 1][: first.col_offset].rstrip()
            lines[first.lineno - 1] = f"{head}\n{docstring}"
        else:
            decorators = getattr(first, "decorator_list", [])
            lines.insert(min(each.lineno for each in [first, *decorators]) - 1, docstring)
    return "\n".join([*lines, ""])


def amend(files):
    """Add the docstrings to the stub of a wheel. Without a Python that can import its module, say so, and leave the stub as it is."""
    (path,) = filter(MODULE.fullmatch, files)
    version = MODULE.fullmatch(path)[1]
    is_ours = path.endswith(tuple(machinery.EXTENSION_SUFFIXES))
    python = sys.executable if is_ours else shutil.which(f"python3.{version}")
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder, path.rpartition("/")[2])
        module.write_bytes(files[path])
        try:
            command = [python or f"python3.{version}", __file__, module]
            texts = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"The type stub has no docstrings, as the module cannot be imported: {error}")
            return
    files[STUB] = documented(files[STUB].decode(), texts).encode()


if __name__ == "__main__":
    json.dump(read(sys.argv[1]), sys.stdout)
