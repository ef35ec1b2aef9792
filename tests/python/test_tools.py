"""The Makefile's targets and the build, with stand-ins for the programs that they run."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import layers
import parts
import sentences
import third_party

pytestmark = pytest.mark.once

HAS_MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def program(folder, name, script):
    """Put a shell script that stands in for a program into a folder."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def make(*arguments, path="/usr/bin:/bin"):
    """Run make with only the programs in `path`."""
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env={"PATH": path, "HOME": os.environ.get("HOME", "/"), "PYTHON": "python3"},
        capture_output=True,
        text=True,
        check=False,
    )


@HAS_MAKE
def test_the_audit_looks_at_every_crate(tmp_path):
    """Without --workspace cargo-deny takes the root package only, and the Python module is not below it."""
    program(tmp_path, "cargo", 'echo "cargo $*"')
    program(tmp_path, "cargo-deny", "")
    run = make("-s", "audit", path=f"{tmp_path}:/usr/bin:/bin")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("cargo deny --workspace --locked check ")


@HAS_MAKE
@pytest.mark.skipif(shutil.which("cargo-deny", path="/usr/bin:/bin") is not None, reason="is there")
def test_the_audit_names_what_is_missing():
    run = make("audit")
    assert run.returncode != 0
    assert "cargo install --locked cargo-deny" in run.stderr


def build_hook(folder):
    """Run the first hook of the build with only the programs in a folder."""
    pytest.importorskip("maturin")
    code = "import build_backend; build_backend.get_requires_for_build_wheel()"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": str(folder), "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_build_names_the_rust_that_it_needs(tmp_path):
    program(tmp_path, "cargo", 'echo "cargo 1.63.0 (fd9c4297c 2022-07-01)"')
    run = build_hook(tmp_path)
    assert run.returncode == 1
    assert "building zeusm needs Rust 1." in run.stderr
    assert "this is cargo 1.63.0" in run.stderr
    assert "Traceback" not in run.stderr
    program(tmp_path, "cargo", 'echo "cargo 1.200.0"')
    run = build_hook(tmp_path)
    assert run.returncode == 0, run.stderr


def test_the_build_says_that_cargo_is_missing(tmp_path):
    run = build_hook(tmp_path)
    assert run.returncode == 1
    assert "and cargo does not run" in run.stderr


@HAS_MAKE
def test_the_texts_of_the_help_are_in_one_column():
    lines = make("help-all").stdout.splitlines()
    columns = {re.match(r"  make [a-z-]+ +", line).end() for line in lines}
    assert len(lines) > 40
    assert len(columns) == 1, lines
    assert set(make("help").stdout.splitlines()) < set(lines)


@HAS_MAKE
def test_the_release_that_is_there_is_tested(tmp_path):
    def commands():
        run = make("-n", "test-dist", f"RELEASE={tmp_path}")
        assert "tools/test_dist.sh" in run.stdout, run.stderr
        return run.stdout

    assert "-m build" in commands()
    (tmp_path / ".built").touch()
    assert "-m build" not in commands()


def test_the_list_of_crates_has_nothing_of_the_build():
    text = json.dumps(
        {
            "serialNumber": "urn:uuid:1",
            "metadata": {
                "timestamp": "now",
                "component": {"bom-ref": "path+file:///build/a#zeusm"},
            },
        }
    )
    found = json.loads(third_party.normal(text, "/build/a"))
    assert found == {"metadata": {"component": {"bom-ref": "path+file://.#zeusm"}}}


@pytest.fixture(scope="module")
def crates():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    found = third_party.metadata(ROOT)
    return {crate: third_party.linked(found, crate) for crate in third_party.CRATES}


def test_the_lists_have_what_is_linked_only(crates):
    for crate, other in ("zeusm-python", "pyo3"), ("zeusm-cpu", "opencl-sys"):
        listed = third_party.sbom(crates[crate], crate)
        names = {component["name"] for component in listed["components"]}
        assert {other, "level-zero-sys"} <= names
        assert not names & {crate, "bindgen", "proptest"}
        references = {component["bom-ref"] for component in listed["components"]}
        assert all(set(each["dependsOn"]) <= references for each in listed["dependencies"])


def test_every_linked_crate_has_its_licence(crates):
    texts = third_party.licences(crates["zeusm-cpu"] | crates["zeusm-python"])
    for package, _ in [*crates["zeusm-cpu"].values(), *crates["zeusm-python"].values()]:
        assert (third_party.name(package) in texts) == (package["source"] is not None)
    assert texts.count("Permission is hereby granted") > 5
    without = re.search(r"((?:\S+@.*\n)+)\n\(Without a file", texts)
    if without:
        assert all("Apache-2.0" in line for line in without[1].splitlines())


def written(folder, suffix=".rs", **files):
    """A folder with these files; their names have two underscores for a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def drawn(folder):
    """The arrows between the files of a folder, as text."""
    return {
        f"{file.relative_to(folder).with_suffix('')} {target.relative_to(folder).with_suffix('')}"
        for file, targets in layers.arrows(folder).items()
        for target in targets
    }


def test_arrows_lead_to_the_file_that_defines_a_name(tmp_path):
    crate = written(
        tmp_path,
        lib="mod a; pub mod b; pub use b::One;",
        a__mod="pub use self::low::{Low, low as lower}; mod low; mod high; pub struct Own; #[cfg(test)] mod tests;",
        a__low='pub struct Low; pub fn low() { /* crate::b::One */ let s = "crate::b::One"; }',
        a__high="use super::{Low, Own}; #[cfg(test)] mod tests { use crate::b::One; }",
        a__tests="use crate::b::One;",
        b="use crate::a; mod inside { pub use crate::a::*; } pub struct One(a::Low); fn f() { inside::lower(); }",
    )
    assert drawn(crate) == {
        "lib b",
        "a/mod a/low",
        "a/high a/low",
        "a/high a/mod",
        "b a/mod",
        "b a/low",
    }
    assert layers.circles(layers.arrows(crate)) == []


def test_macros_and_qualified_paths_are_arrows(tmp_path):
    crate = written(
        tmp_path,
        lib="mod a; mod b; mod c;",
        a="macro_rules! call { () => {} } pub(crate) use call; pub fn f() {}",
        b="fn f() { call!(); }",
        c="fn f() { super::a::f(); }",
    )
    assert drawn(crate) == {"b a", "c a"}


def test_an_exported_macro_is_where_it_is_defined(tmp_path):
    crate = written(
        tmp_path,
        lib="mod a; mod b;",
        a="#[macro_export] macro_rules! call { () => {} }\n"
        "#[macro_export] macro_rules! twice { () => { $crate::call!(); $crate::call!(); } }",
        b="fn f() { crate::twice!(); }",
    )
    assert drawn(crate) == {"b a"}


def test_a_file_that_only_passes_names_on_is_in_no_circle(tmp_path):
    crate = written(
        tmp_path,
        lib="mod a;",
        a__mod="mod one; mod two; pub use one::One; pub use two::Two;",
        a__one="pub struct One(super::Two);",
        a__two="pub struct Two;",
    )
    assert layers.circles(layers.arrows(crate)) == []
    (crate / "a" / "two.rs").write_text("pub struct Two(crate::a::One);")
    found = layers.circles(layers.arrows(crate))
    assert [[file.name for file in circle] for circle in found] == [["one.rs", "two.rs"]]


def test_imports_of_python_are_arrows(tmp_path):
    package = written(
        tmp_path / "p",
        ".py",
        a="from p import name\nfrom . import b",
        b="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a",
        c="def f():\n    from p.b import g",
    )
    (package / "__init__.py").write_text("from p.b import name")
    assert drawn(package) == {"__init__ b", "a b", "c b"}


def test_the_list_of_circles_only_shrinks(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    crate = written(
        tmp_path / "src",
        lib="mod a; mod b;",
        a="use crate::b::B;",
        b="use crate::a::A; pub struct B;",
    )
    (crate / "a.rs").write_text("use crate::b::B; pub struct A;")
    assert layers.check(crate, []) == 1
    assert "src/a.rs:1 uses b.rs" in capsys.readouterr().out
    entry = ("src", "a b", "a reason")
    assert layers.check(crate, [entry]) == 0
    (crate / "b.rs").write_text("pub struct B;")
    assert layers.check(crate, [entry]) == 1
    assert "no circle any more" in capsys.readouterr().out


def test_sentences_end_where_prose_does():
    """Of the pieces with more words than a sentence may have, two are one sentence."""
    half = " ".join(["word"] * 20)
    lines = [f"# {half}", half, half, "", f"- {half}. {half.capitalize()}", f"- {half}", "", "```"]
    lines += [f"{half} {half}", "```", f"| {half} | {half} |", f"| [{half}](target) {half} | |"]
    found = [(line, count) for line, count, _ in sentences.too_long("\n".join(lines))]
    assert found == [(2, 40), (12, 40)]


@HAS_MAKE
def test_parts_run_beside_each_other(tmp_path):
    """The output of one that fails is shown, and the slowest tests of all are listed. Recipes see no jobserver.

    A part is begun after those that it needs, if they passed.
    """
    rules = {
        "good": [
            'case "$$MAKEFLAGS$$MFLAGS" in *jobserver*) exit 1; esac',
            'echo "     Running tests/queue.rs (target/queue)"',
            'echo "test fills ... ok <2.500s>"',
            'echo "test result: ok. 1 passed; 0 failed; 0 ignored"',
        ],
        "bad": [
            'echo "3.75s call     tests/test_x.py::test_y"',
            'echo "what it says: $(NAME)"; exit 1',
        ],
        "before": ["sleep 0.5; touch made"],
        "after": ["rm made"],
        "never": ["touch never-run"],
    }
    parts_of = [f"{name}:\n" + "".join(f"\t@{line}\n" for line in rules[name]) for name in rules]
    words = "before after:before good bad never:before:bad 'NAME=a b'"
    command = f"{sys.executable} {parts.__file__} --jobs 2 --logs logs {words}"
    (tmp_path / "Makefile").write_text(f"all: sleep\n\t{command}\nsleep:\n{''.join(parts_of)}")
    run = subprocess.run(
        ["make", "-j2", "all"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode != 0
    assert "what it says: a b" in run.stdout
    slowest = ["3.8 s  bad: tests/test_x.py::test_y", "2.5 s  good: tests/queue.rs fills"]
    assert [line.strip() for line in run.stdout.splitlines() if " s  " in line] == slowest
    assert "good passed in" in run.stdout
    assert "after passed in" in run.stdout
    assert "never was not run: bad failed" in run.stdout
    assert "failed: bad, never" in run.stdout
    assert not list(tmp_path.glob("*made*")) + list(tmp_path.glob("never-run"))
    assert "1 passed, 0 failed" in run.stdout


@HAS_MAKE
def test_foreign_programs_are_made_with_the_callers_variables_and_end_with_a_table(tmp_path):
    program(tmp_path, "make", 'echo "$*"; echo "== 3 passed, 1 xfailed in 2.0s =="')
    run = make(
        "test-foreign",
        f"MAKE_COMMAND={tmp_path}/make",
        f"TARGET={tmp_path}",
        "PROGRAMS=umf jax",
        "JAX_PYTHON=python4",
    )
    assert run.returncode == 0, run.stderr
    assert "JAX_PYTHON=python4" in (tmp_path / "tests/test-jax.log").read_text()
    rows = [
        [cell.strip() for cell in line.split("|")[3:7]]
        for line in run.stdout.splitlines()
        if "| " in line
    ]
    assert rows[-2:] == [["3", "0", "1", "0"]] * 2
    assert run.stdout.splitlines()[-1] == "6 passed, 0 failed"


@HAS_MAKE
@pytest.mark.parametrize("prefix", ["/opt/the runtime", "the runtime"])
def test_a_prefix_may_have_blanks_and_be_relative(tmp_path, prefix):
    """The library that is installed is a stand-in."""
    (tmp_path / "release").mkdir()
    (tmp_path / "release/libzeusm_cpu.so").touch()
    staged = tmp_path / "a stage"
    variables = {"CARGO": "true", "TARGET": tmp_path, "PREFIX": prefix, "DESTDIR": staged}
    run = make("-o", "setup", "install", *(f"{name}={value}" for name, value in variables.items()))
    assert run.returncode == 0, run.stderr
    installed = ROOT / prefix
    below = staged / installed.relative_to("/")
    driver = installed / "lib/zeusm/libze_loader.so.1"
    assert (staged / driver.relative_to("/")).is_file()
    variable = (below / "share/zeusm/level-zero.env").read_text()
    assert variable == f"ZE_ENABLE_ALT_DRIVERS={driver}\n"
    description = (below / "lib/pkgconfig/zeusm-cpu.pc").read_text()
    assert description.startswith(f"prefix={installed}\n")
    assert 'Libs: -L"${libdir}" -lze_loader' in description
