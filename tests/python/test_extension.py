"""The extension of docs/howto/extension.md: each compiler and each build system makes it, and the page's call runs on each module."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import zeusm
from conftest import ROOT

pytest.importorskip("dpctl", reason="from_pointer needs dpctl")

pytestmark = pytest.mark.once

EXAMPLE = ROOT / "examples" / "extension"
PAGE = (ROOT / "docs" / "howto" / "extension.md").read_text()
CALL = re.search(r"^```\{code-block\} python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[1]
FLAGS = ["-Wall", "-Wextra", "-Werror"]


def use(fresh, folder, module):
    """Run the page's call on a module in a folder."""
    code = CALL.replace("import blocks", f"import {module} as blocks")
    assert code.count(module) == 1 or module == "blocks"
    fresh.run("-W", "error", "-c", code, env={"PYTHONPATH": str(folder)})


@pytest.mark.parametrize("compiler", ["gcc", "g++", "clang"])
def test_each_compiler_takes_it_without_a_warning(compiler, tmp_path, fresh):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    include = [f"-I{path}" for path in (zeusm.get_include(), sysconfig.get_path("include"))]
    module = tmp_path / ("blocks" + sysconfig.get_config_var("EXT_SUFFIX"))
    command = [compiler, *FLAGS, "-shared", "-fPIC", *include, EXAMPLE / "blocks.c", "-o", module]
    subprocess.run(command, check=True)
    use(fresh, tmp_path, "blocks")


def commands(system):
    """The page's commands for a build system, without those that download it."""
    tab = re.search(
        rf"^:::\{{tab-item\}} {system}\n.*?^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE
    )
    return re.sub(r"^pip install \w.*\n", "", tab[1], flags=re.MULTILINE)


@pytest.mark.daily
@pytest.mark.parametrize("system", ["setuptools", "Meson", "CMake"])
def test_each_build_system_makes_both_modules(system, tmp_path, fresh):
    source = shutil.copytree(EXAMPLE, tmp_path / "source")
    variables = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "VIRTUAL_ENV": sys.prefix,
        "CFLAGS": " ".join(FLAGS),
        # pip's: the modules go to a folder of the test's, and nothing is downloaded.
        "PIP_TARGET": str(source / "build"),
        "PIP_NO_INDEX": "1",
    }
    command = ["sh", "-euc", commands(system)]
    run = subprocess.run(
        command, cwd=source, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    for module in ("blocks", "cyblocks"):
        use(fresh, source / "build", module)


@pytest.mark.parametrize("option", ["--cflags", "--modversion"])
def test_pkg_config_knows_the_header_and_the_version(option):
    include = zeusm.get_include()
    found = subprocess.run(
        ["pkg-config", option, "zeusm"],
        env=os.environ | {"PKG_CONFIG_PATH": include},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.strip() == {"--cflags": f"-I{include}", "--modversion": zeusm.__version__}[option]


def members(declarations):
    """The names that the lines of a structure declare, in C or Cython."""
    for line in declarations.splitlines():
        if function := re.search(r"\(\*(\w+)\)", line):
            yield function[1]
        else:
            yield from re.findall(r"(\w+)(?=,|;|$)", line)


def test_cython_has_what_the_header_has():
    """The members of the structures, in the same order."""
    header = (Path(zeusm.get_include()) / "zeusm.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared = (Path(zeusm.__file__).parent / "__init__.pxd").read_text()
    for name, count in (("zeusm_memory", 7), ("zeusm_api", 9)):
        theirs = re.search(rf"typedef struct \{{([^{{}}]*)\}} {name};", header)[1]
        own = re.search(rf"ctypedef struct {name}:\n((?: {{8}}.*\n)+)", declared)[1]
        assert list(members(own)) == list(members(theirs))
        assert len(list(members(own))) == count
