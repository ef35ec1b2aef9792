"""Signatures and types of the compiled module, from its type stub: the module has names and defaults only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import zeusm.memory
from sphinx.application import Sphinx

STUB = Path(zeusm.__file__).with_name("_zeusm.pyi")

#: What the stub's private names mean to a reader.
MEANINGS = {
    "_Integer": "int",
    "_B": "Buffer",
    "_Memory": "MemoryUSM",
    "_Advice": "str",
    "_UsmType": "str",
    "_Index": "index",
    "_Depends": "Event | dpctl.SyclEvent | Iterable | None",
    "EllipsisType": "ellipsis",
    "Self": "Self",
}

#: An attribute of the stub that never changes, which is a property of the module.
FINAL = re.compile(r"(\w+): Final\[(.*)\]")


def definitions(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | None, list[str]]]:
    """Each function of the stub by its name, and each class with the names of its bases."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node, []
        elif isinstance(node, ast.ClassDef):
            yield node.name, None, [base.id for base in node.bases if isinstance(base, ast.Name)]
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield f"{node.name}.{member.name}", member, []


class Stub:
    """The functions and classes of a stub."""

    def __init__(self, text: str) -> None:
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self.bases: dict[str, list[str]] = {}
        properties = FINAL.sub(r"@property\n    def \1(self) -> \2: ...", text)
        for name, function, bases in definitions(ast.parse(properties)):
            if function is None:
                self.bases[name] = bases
            else:
                self.functions.setdefault(name, []).append(function)

    def find(self, name: str) -> ast.FunctionDef | None:
        """The function or method, also of a base class; not an overloaded one, which has no single signature."""
        found = self.functions.get(name)
        if found:
            return found[0] if len(found) == 1 else None
        owner, _, member = name.rpartition(".")
        for base in self.bases.get(owner, []):
            inherited = self.find(f"{base}.{member}")
            if inherited:
                return inherited
        return None


PUBLIC = {
    name: f"{module.__name__}.{name}"
    for module in (zeusm.memory, zeusm)
    for name in module.__all__
    if not name.startswith("_")
}


def readable(annotation: ast.expr) -> str:
    """The annotation, with public names in full, so that they become links."""
    text = ast.unparse(annotation)
    text = re.sub(r"\bnpt\.", "numpy.typing.", re.sub(r"\bnp\.", "numpy.", text))
    return re.sub(
        r"(?<![\w.])[A-Za-z_]\w*",
        lambda name: MEANINGS.get(name[0], PUBLIC.get(name[0], name[0])),
        text,
    )


def signature(function: ast.FunctionDef) -> tuple[str, str]:
    """The arguments, without the object itself, and the result."""
    arguments = function.args
    static = any(ast.unparse(decorator) == "staticmethod" for decorator in function.decorator_list)
    for group in (arguments.posonlyargs, arguments.args):
        if group and group[0].arg in ("self", "cls") and not static:
            del group[0]
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        *filter(None, [arguments.vararg, arguments.kwarg]),
    ]
    for argument in every:
        if argument.annotation:
            argument.annotation = ast.parse(readable(argument.annotation), mode="eval").body
    returns = readable(function.returns) if function.returns else ""
    return f"({ast.unparse(arguments)})", returns


def key(name: str) -> str | None:
    """A public name of the compiled module in the stub."""
    match = re.fullmatch(r"zeusm(?:\.memory)?\.(.+)", name)
    return match[1] if match else None


def setup(app: Sphinx) -> dict[str, bool]:
    text = STUB.read_text()

    def find(name: str) -> ast.FunctionDef | None:
        wanted = key(name)
        # A new stub each time, as a signature is made in place.
        return Stub(text).find(wanted) if wanted else None

    def process_signature(_app, what, name, _obj, _options, _signature, _returns):  # type: ignore[no-untyped-def]
        is_class = what in ("class", "exception")
        if not is_class and what not in ("function", "method"):
            return None
        function = find(f"{name}.__new__" if is_class else name)
        if function is None:
            return None
        arguments, returns = signature(function)
        return arguments, None if is_class else returns

    def process_docstring(_app, what, name, _obj, _options, lines):  # type: ignore[no-untyped-def]
        function = find(name) if what in ("attribute", "property") else None
        if function is not None and function.returns:
            lines.extend(["", f":type: {readable(function.returns)}"])

    app.connect("autodoc-process-signature", process_signature)
    app.connect("autodoc-process-docstring", process_docstring, priority=600)
    return {"parallel_read_safe": True}
