"""Each example and each Python snippet of the documents runs in a new interpreter."""

import doctest
import importlib.util
import inspect
import os
import re
import subprocess
import sys

import pytest
import zeusm.memory
from conftest import ROOT, UNKNOWN_PROCESSOR
from documents import FILE, SESSION, commands, examples, snippets

sys.path.insert(0, str(ROOT / "tools"))
import layers

HAS_NUMBA_DPEX = importlib.util.find_spec("numba_dpex") is not None
# Examples that need numba-dpex run in its environment, and the demonstration in both.
EXAMPLES = [
    pytest.param(path, id=path.name, marks=[] if in_both else pytest.mark.once)
    for path in examples(of_peers=False)
    for of_numba_dpex in ["numba_dpex" in path.name]
    for in_both in [of_numba_dpex or path.name == "demo.py"]
    if HAS_NUMBA_DPEX or not of_numba_dpex
]
SNIPPETS = [pytest.param(code, id=name) for code, name in snippets(of_peers=False)]


@pytest.mark.once
def test_architecture_names_what_there_is():
    """Each file and folder that the page names exists. Its table of layers lists each module after all that it uses."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    roots = "src|python|cpu|sys|tests|tools|benches|requirements|xe-sim"
    paths = set(re.findall(rf"`((?:{roots})(?:/[\w.-]+)*)/?`", text))
    assert len(paths) > 40
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    for crate in ("src", "python/src", "cpu/src"):
        row = re.search(rf"^\| `{crate}` \| (.*) \|$", text, re.MULTILINE)[1]
        doors = {"lib", "call"}  # The crate's root, and a macro.
        modules = {entry.stem for entry in (ROOT / crate).iterdir()} - doors
        listed = re.findall(r"`(\w+)`", row)
        assert set(listed) == modules
        places = {module: place for place, module in enumerate(listed)}
        for file, targets in layers.arrows(ROOT / crate).items():
            for target in targets:
                above, below = (
                    places.get(each.relative_to(ROOT / crate).parts[0].removesuffix(".rs"))
                    for each in (file, target)
                )
                assert above is None or below is None or below <= above, (file, target)


@pytest.mark.once
def test_each_variable_is_documented():
    """Those of users in the reference, those of tests in CONTRIBUTING.md."""
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "reference" / "variables.md"]
    documented = "".join(page.read_text() for page in pages)
    folders = ["benches", "cpu/tests", "make", "tests", "tools"]
    files = [ROOT / "Makefile", *(path for each in folders for path in (ROOT / each).rglob("*"))]
    used = {
        name
        for file in files
        if file.suffix in ("", ".mk", ".py", ".rs", ".sh") and file.is_file()
        for name in re.findall(
            r"\bZEUSM_(?:TEST|BENCH|FUZZ|GALLERY|SIMULATIONS?|CPU|\w+_LIBRARY)\w*", file.read_text()
        )
    }
    assert len(used) > 20
    assert sorted(name for name in used if f"`{name}" not in documented) == []


@pytest.mark.parametrize("path", EXAMPLES)
def test_example(fresh, path):
    if path.name == "demo.py":
        pytest.importorskip("dpctl")
    assert fresh.run("-W", "error", path).stdout


@pytest.mark.once
@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet(fresh, code, tmp_path):
    fresh.run("-W", "error", "-c", code, cwd=tmp_path)  # Some write files.


TUTORIAL = (ROOT / "docs/tutorial.md").read_text()
# The tutorial's output is that of a machine without a GPU.
WITHOUT_GPU = pytest.mark.skipif(
    zeusm.runtime().kind != "cpu", reason="the tutorial shows the output of the CPU runtime"
)

# Doctest in a new interpreter: the session begins with the import of zeusm, before dpctl.
RUN_SESSION = """
import doctest, sys
session = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, "tutorial", None, None)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
result = runner.run(session)
print(result.attempted)
sys.exit(result.failed > 0)
"""


def plain():
    """The environment without variables of zeusm: what a reader has."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ZEUSM_")}


@pytest.mark.once
@WITHOUT_GPU
def test_the_session_of_the_tutorial():
    session = "\n".join(SESSION.findall(TUTORIAL))
    assert session.count(">>> ") > 30
    result = subprocess.run(
        [sys.executable, "-c", RUN_SESSION],
        input=session,
        env=plain(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(result.stdout) == session.count(">>> ")


@pytest.mark.once
def test_the_page_shows_the_program_in_rust():
    """`make test-crate` runs it."""
    page = (ROOT / "docs/reference/rust.md").read_text()
    program = (ROOT / "examples/rust/src/main.rs").read_text()
    assert f"```rust\n{program}```" in page


def shell():
    """The commands of the tutorial. The checker shows Python's frames up to CPython 3.14."""
    for command, output in commands(TUTORIAL):
        needs_frames = pytest.mark.skipif(
            'File "' in output and sys.version_info >= (3, 15), reason="shows frames of Python"
        )
        yield pytest.param(command, output, id=command, marks=needs_frames)


@pytest.mark.once
@WITHOUT_GPU
@pytest.mark.parametrize(("command", "output"), list(shell()))
def test_the_commands_of_the_tutorial(tmp_path, command, output):
    for name, text in FILE.findall(TUTORIAL):
        (tmp_path / name).write_text(text)
    folder = os.path.dirname(sys.executable)
    result = subprocess.run(
        command,
        shell=True,
        cwd=tmp_path,
        env=plain() | {"PATH": f"{folder}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    found = result.stdout.replace(UNKNOWN_PROCESSOR, "")
    assert doctest.OutputChecker().check_output(output, found, doctest.ELLIPSIS), found


def public():
    """The public names of `zeusm` and `zeusm.memory`, and the members of their classes. The version and the capsule of the
    C API are omitted: they are values of built-in types, which have no docstrings."""
    for module in (zeusm, zeusm.memory):
        for name in module.__all__:
            if name in ("__version__", "_C_API", "TRACEMALLOC_DOMAIN"):
                continue
            thing = getattr(module, name)
            yield pytest.param(thing.__doc__, id=f"{module.__name__}.{name}")
            if isinstance(thing, type):
                pythons = next(kind for kind in thing.__mro__ if kind.__module__ == "builtins")
                for member in sorted(set(dir(thing)) - set(dir(pythons))):
                    if not member.startswith("_"):
                        text = getattr(thing, member).__doc__
                        yield pytest.param(text, id=f"{module.__name__}.{name}.{member}")


@pytest.mark.once
@pytest.mark.parametrize("text", list(public()))
def test_docstrings(text):
    """Each docstring exists, and its example runs."""
    text = inspect.cleandoc(text or "")
    assert "\nExamples\n--------\n" in text
    example = doctest.DocTestParser().get_doctest(text, {}, "example", None, None)
    assert example.examples
    result = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(example)
    assert result.failed == 0
