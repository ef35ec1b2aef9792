"""Docstrings write code in single backticks, as Markdown does. Here they become links where they name something public, and
code elsewhere."""

import re

import zeusm.memory
from sphinx.application import Sphinx

CODE = re.compile(r"(?<![`:\w])`([^`\n]+)`(?![`_\w])")
EXAMPLE = re.compile(r"\s*(>>>|\.\.\. )")


def link(name: str, owner: object, module: str) -> str:
    """A reference to a member of the same class or to a name of a module, or code."""
    plain = name.removesuffix("()")
    if re.fullmatch(r"[A-Za-z]\w*(\.\w+)*", plain):
        if isinstance(owner, type) and "." not in plain and hasattr(owner, plain):
            return f":py:obj:`~{module}.{owner.__name__}.{plain}`"
        for source in (zeusm.memory, zeusm):
            first, _, rest = plain.partition(".")
            if first in source.__all__ and (not rest or hasattr(getattr(source, first), rest)):
                return f":py:obj:`{plain} <{source.__name__}.{plain}>`"
    return f"``{name}``"


def bases(_app, _name, _obj, _options, found):  # type: ignore[no-untyped-def]
    """A private base is none that a reader could use; its members are on the page of each class."""
    found[:] = [base for base in found if not base.__name__.startswith("_")]


def process(_app, what, name, _obj, _options, lines):  # type: ignore[no-untyped-def]
    parts = name.split(".")
    start = 2 if parts[:2] == ["zeusm", "memory"] else 1
    module = ".".join(parts[:start])
    owner = (
        getattr(zeusm.memory if start == 2 else zeusm, parts[start], None)
        if len(parts) > start
        else None
    )
    for number, line in enumerate(lines):
        if not EXAMPLE.match(line):
            lines[number] = CODE.sub(lambda code: link(code[1], owner, module), line)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-process-bases", bases)
    return {"parallel_read_safe": True}
