"""Checks the conda recipe as far as that goes without conda's channels: check.py PYTHON FOLDER.

All variants are rendered. The packages of PYTHON's are built in FOLDER with this machine's compilers and with PYTHON, which has maturin, in
the place of what the recipe requires for the build. They are unpacked into one prefix, and zeusm runs there.
"""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from rattler_build import (
    EnvironmentIsolation,
    PlatformConfig,
    RenderConfig,
    Stage0Recipe,
    VariantConfig,
)
from rattler_build.package import Package

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECIPE = HERE / "recipe.yaml"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
LINUX = RenderConfig(platform=PlatformConfig(target_platform="linux-64"))
COMPILERS = {"c_compiler": ["gcc"], "rust_compiler": ["rust"], "c_stdlib": ["sysroot"]}


def rendered():
    """The packages of the recipe as they are built with conda's channels, by name and version of Python."""
    variants = VariantConfig({**COMPILERS, "c_stdlib_version": ["2.28"], "python": PYTHONS})
    outputs = Stage0Recipe.from_file(RECIPE).render(variants, LINUX)
    return {(it.recipe.package.name, it.variant.get("python")): it.recipe for it in outputs}


def of_this_machine(python):
    """The recipe with nothing that it requires for the build: `python` takes the place of conda's."""
    folder = f"lib/python{version_of(python)}/site-packages"
    recipe = Stage0Recipe.from_file(RECIPE).to_dict()
    recipe["source"] = {"path": str(ROOT)}
    for output in recipe["outputs"]:
        needs = output["requirements"]
        output["requirements"] = {name: needs[name] for name in needs if name.startswith("run")}
        paths = f"export PYTHON={python} SP_DIR=$PREFIX/{folder}"
        output["build"]["script"]["content"].insert(0, paths)
    return Stage0Recipe.from_dict(recipe)


def version_of(python):
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def build(recipe, folder):
    """Builds the packages of a recipe; returns their files."""
    results = recipe.run_build(
        output_dir=folder,
        channels=[],
        no_include_recipe=True,
        env_isolation=EnvironmentIsolation.NONE,
        render_config=LINUX,
    )
    return [Path(path) for result in results for path in result.packages]


def main(python, folder):
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    version = workspace["package"]["version"]
    wanted = {("zeusm", python) for python in PYTHONS} | {("zeusm-cpu", None)}
    found = rendered()
    assert set(found) == wanted, sorted(found, key=str)
    assert {str(it.package.version) for it in found.values()} == {version}, "the recipe's version"
    shutil.rmtree(folder, ignore_errors=True)
    packages = build(of_this_machine(python), folder)
    prefix = folder / "prefix"
    for file in packages:
        package = Package.from_file(file)
        print(file.name, package.depends, package.constrains)
        unpack(file, prefix)
    code = "import zeusm.memory as zm; print(zm.MemoryUSMShared(64))"
    site = prefix / f"lib/python{version_of(python)}/site-packages"
    environment = {**os.environ, "PYTHONPATH": str(site)}
    subprocess.run([python, "-P", "-c", code], env=environment, check=True, cwd=prefix)


def unpack(file, prefix):
    """Puts the files of a package, which is a zip of compressed archives, into a prefix. The paths within that conda would write there
    are not used."""
    prefix.mkdir(exist_ok=True)
    with zipfile.ZipFile(file) as archive:
        (name,) = [name for name in archive.namelist() if name.startswith("pkg-")]
        command = ["tar", "--zstd", "--extract", "--directory", prefix]
        subprocess.run(command, input=archive.read(name), check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]).resolve())
