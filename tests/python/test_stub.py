"""The type stub of the wheel: that of the sources, with the docstrings of the module."""

import ast
import inspect
import sys
from pathlib import Path

import pytest
import zeusm
import zeusm.memory as zm
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import docstrings

pytestmark = pytest.mark.once

INSTALLED = Path(zeusm.__file__).with_name("_zeusm.pyi")
SOURCE = ROOT / "python" / "zeusm" / "_zeusm.pyi"


def texts(path):
    """The statements of a stub by their names, each with the docstring that an editor shows."""
    found = {}

    def add(body, prefix):
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found[prefix + node.name] = ast.get_docstring(node)
                add(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.AnnAssign):
                is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                text = inspect.cleandoc(after.value.value) if is_text else None
                found[prefix + ast.unparse(node.target)] = text

    add(ast.parse(path.read_text()).body, "")
    return found


def test_the_sources_have_no_docstring_twice():
    assert not any(texts(SOURCE).values())


def test_the_names_are_the_same():
    assert texts(INSTALLED).keys() == texts(SOURCE).keys()


@pytest.mark.parametrize(
    ("name", "thing"),
    [
        ("MemoryUSMShared", zm.MemoryUSMShared),
        ("empty", zeusm.empty),
        ("_Memory.copy_to_host", zm._Memory.copy_to_host),
        ("_Memory.nbytes", zm._Memory.nbytes),
        ("UsmArray.shape", zeusm.UsmArray.shape),
        ("_Figures.hits", zm.PoolReport.hits),
        ("_Exports.__dlpack__", zeusm.UsmArray.__dlpack__),
        ("IPCMemoryHandle.open", zm.IPCMemoryHandle.open),
    ],
)
def test_an_editor_shows_the_docstring(name, thing):
    assert texts(INSTALLED)[name] == inspect.cleandoc(thing.__doc__)


def test_every_public_name_has_its_docstring():
    found = texts(INSTALLED)
    public = [
        name
        for name in found
        if not any(part.startswith(("_", "Supports", "TRACE")) for part in name.split("."))
    ]
    assert len(public) > 100
    assert [name for name in public if not found[name]] == []


def test_docstrings_are_inserted_as_python_reads_them():
    stub = (
        "class A(B): ...\n"
        "class C:\n"
        "    @property\n"
        "    def p(self) -> int: ...\n"
        "    x: Final[int]\n"
        "    def f(\n        self, a: int\n    ) -> None: ...\n"
        "class D(C): ...\n"
    )
    text = 'One "line".\n\n>>> "a\\n"\n\'\'\'""" \'\'\'"'
    found = docstrings.documented(
        stub, {"A": "Of A.", "C": text, "D.p": text, "C.x": "X.", "C.f": text}
    )
    tree = ast.parse(found)
    one, other, last = tree.body
    assert ast.get_docstring(one) == "Of A."
    assert ast.get_docstring(other, clean=True) == text
    assert ast.get_docstring(other.body[1]) == text
    assert other.body[3].value.value == "X."
    assert ast.get_docstring(other.body[4]) == text
    assert ast.get_docstring(last) is None
    # Without the docstrings it is the stub again.
    assert ast.unparse(ast.parse(stub)).count("...") == 4


def test_a_module_that_cannot_be_imported_leaves_the_stub(capsys):
    """As that of a Python that is not here."""
    for name in "_zeusm.abi3.so", "_zeusm.cpython-399-x86_64-linux-gnu.so":
        files = {docstrings.STUB: b"def f() -> None: ...\n", f"zeusm/{name}": b"no library"}
        docstrings.amend(files)
        assert files[docstrings.STUB] == b"def f() -> None: ...\n"
        assert "The type stub has no docstrings" in capsys.readouterr().out
