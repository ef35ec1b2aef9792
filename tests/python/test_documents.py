"""Every example and every piece of Python in the documents runs, in an interpreter of its own."""

import doctest
import importlib.util
import inspect
import re

import pytest
import zeusm.memory
from conftest import ROOT

HAS_NUMBA_DPEX = importlib.util.find_spec("numba_dpex") is not None
# What needs numba-dpex runs in the environment that has it.
EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").glob("*.py"))
    if HAS_NUMBA_DPEX or "numba_dpex" not in path.name
]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def snippets():
    """Each fenced piece of Python, named by its document and line."""
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = document.read_text()
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            yield pytest.param(match[1], id=f"{document.name}:{line}")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(fresh, path):
    assert fresh.run("-W", "error", path).stdout


@pytest.mark.parametrize("code", list(snippets()))
def test_snippet(fresh, code):
    fresh.run("-W", "error", "-c", code)


def public():
    """What `import zeusm` and `import zeusm.memory` offer."""
    for module in (zeusm, zeusm.memory):
        for name in module.__all__:
            if not name.startswith("__"):
                yield pytest.param(getattr(module, name), id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(public()))
def test_docstrings(thing):
    """There is one, and its examples hold."""
    members = [thing, *vars(thing).values()] if isinstance(thing, type) else [thing]
    assert thing.__doc__
    for member in members:
        text = inspect.getdoc(member) or ""
        example = doctest.DocTestParser().get_doctest(text, {}, repr(member), None, None)
        result = doctest.DocTestRunner(verbose=False).run(example)
        assert result.failed == 0
