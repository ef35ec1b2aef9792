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
    lines = make("help").stdout.splitlines()
    columns = {re.match(r"  make [a-z-]+ +", line).end() for line in lines}
    assert len(lines) > 20
    assert len(columns) == 1, lines


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
