"""The PEP 517 backend: copies the CPU runtime into the package and calls maturin.

A wheel contains two libraries. maturin builds the extension module. The other one is the Level Zero
runtime on the CPU (crate zeusm-cpu). Its file has the name of the Level Zero loader, which it replaces.

With the build arguments `--zig --compatibility manylinux_X_Y` (`make dist`), both are linked by zig with
version X.Y of the C library.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import docstrings
import maturin
import third_party
import wheels
from maturin import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent
IN_PACKAGE = ROOT / "python" / "zeusm" / "lib" / "libze_loader.so.1"
# The name without a version, by which oneCCL opens the loader.
UNVERSIONED = IN_PACKAGE.with_suffix("")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    place_cpu_runtime(config_settings)
    name = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    with wheels.rewritten(Path(wheel_directory) / name) as files:
        third_party.amend(files, ROOT)
        docstrings.amend(files)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    place_cpu_runtime(config_settings)
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def get_requires_for_build_wheel(config_settings=None):
    check_rust()
    return maturin.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings=None):
    check_rust()
    return maturin.get_requires_for_build_editable(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    check_rust()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    check_rust()
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def check_rust():
    """Ends the build with a plain message if cargo is missing, or too old to read the manifests."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    wanted = manifest["workspace"]["package"]["rust-version"]
    needs = f"building zeusm needs Rust {wanted} or later (`rustup update stable`)"
    try:
        run = subprocess.run(["cargo", "--version"], stdout=subprocess.PIPE, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{needs}, and cargo does not run: {error}") from None
    found = re.match(r"cargo (\d+)\.(\d+)", run.stdout)
    if found and tuple(map(int, found.groups())) < tuple(map(int, wanted.split("."))):
        raise SystemExit(f"{needs}, and this is {run.stdout.strip()}")


def place_cpu_runtime(config_settings):
    """Builds zeusm-cpu and copies its shared library into the package."""
    IN_PACKAGE.parent.mkdir(exist_ok=True)
    shutil.copyfile(build_cpu_runtime(build_command(config_settings)), IN_PACKAGE)
    link_unversioned()


def link_unversioned():
    """Links an empty library that needs the runtime, in which its users find the runtime's symbols. Wheels contain no links, and a
    copy would be a second runtime in a process."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    options = ["-shared", "-nostdlib", "-Wl,--no-as-needed", f"-Wl,-soname,{UNVERSIONED.name}"]
    options += ["-Wl,-rpath,$ORIGIN", str(IN_PACKAGE), "-o", str(UNVERSIONED)]
    subprocess.run([*compiler, *options], check=True)


def build_command(config_settings):
    """The cargo command that builds for the C library that maturin builds for."""
    arguments = (config_settings or {}).get("build-args", [])
    if isinstance(arguments, str):
        arguments = shlex.split(arguments)
    if "--zig" not in arguments:
        return ["cargo", "build"]
    glibc = re.search(r"manylinux_(\d+)_(\d+)", " ".join(arguments))
    if glibc is None:
        raise ValueError("--zig needs --compatibility manylinux_X_Y")
    link_unwinder_of_the_process()
    target = f"x86_64-unknown-linux-gnu.{glibc[1]}.{glibc[2]}"
    return ["cargo", "zigbuild", "--target", target]


def link_unwinder_of_the_process():
    """Has zig link libgcc_s, as other linkers do, and not its own static unwinder.

    Before Python 3.14 daemon threads that want the GIL at the exit end by `pthread_exit`, with which libgcc_s unwinds their
    frames. Rust's part of that calls the unwinder back with a structure of libgcc_s, so another unwinder crashes.
    """
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, "-print-file-name=libgcc_s.so.1"]
    library = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    flag = f"-C link-arg={library}"
    # cargo ignores the flags of the target where RUSTFLAGS is set.
    of_target = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS"
    name = "RUSTFLAGS" if "RUSTFLAGS" in os.environ else of_target
    flags = os.environ.get(name, "")
    if flag not in flags:
        os.environ[name] = f"{flags} {flag}".strip()


def build_cpu_runtime(command):
    """The path of the shared library that cargo has built."""
    command += ["--release", "--locked", "--package", "zeusm-cpu"]
    command.append("--message-format=json-render-diagnostics")
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    for line in output.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "zeusm_cpu":
            for name in message["filenames"]:
                if name.endswith(".so"):
                    return name
    raise RuntimeError("cargo built no shared library for zeusm-cpu")
