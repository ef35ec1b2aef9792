"""The tests that run over PoCL: programs of Rust, files of pytest. Each yields its names and their results."""

import json
import os
import re
import subprocess

import processes
from processes import FAILED, PASSED, SKIPPED
from root import PROJECT

# The harness of Rust writes a line of JSON when a test begins and one when it ends.
RUST = processes.Marks(
    begun=re.compile(rb'"event": "started", "name": "(?P<name>[^"]+)"'),
    ended=re.compile(rb'"name": "(?P<name>[^"]+)", "event": "(?P<result>ok|failed|ignored)"'),
    results={b"ok": PASSED, b"failed": FAILED, b"ignored": SKIPPED},
    codes=(0, 101),
)
PYTEST = processes.Marks(
    begun=re.compile(rb"^\[begun\] (?P<name>.+)$", re.MULTILINE),
    ended=re.compile(rb"^\[ended\] (?P<result>\w+) (?P<name>.+)$", re.MULTILINE),
    results={b"passed": PASSED, b"failed": FAILED, b"skipped": SKIPPED},
)


def output(command):
    """What a command prints; its errors end the program."""
    run = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if run.returncode:
        raise SystemExit(f"{command[-6:]}:\n{run.stdout[-4000:]}{run.stderr[-4000:]}")
    return run.stdout


# As .cargo/config.toml and the Makefile have them.
OF_RUST = {"ZEUSM_CACHE_SIZE": "0", "RUSTC_BOOTSTRAP": "1", "RUST_MIN_STACK": "8388608"}


def file_of(names):
    """A file with the names, in the project, as folders of this machine are not in the root."""
    file = PROJECT / f"target/pocl/names-{os.getpid()}"
    file.write_text("\n".join(names))
    return file


class Rust:
    """A program of Rust tests of the CPU runtime."""

    def __init__(self, name):
        self.name = name

    def prepare(self, root):
        """Build it here; its names are read there."""
        build = ["cargo", "test", "--locked", "-p", "zeusm-cpu", "--test", self.name, "--no-run"]
        lines = output([*build, "--message-format=json"]).splitlines()
        built = [json.loads(line) for line in lines]
        paths = [artifact["executable"] for artifact in built if artifact.get("executable")]
        self.start = [*paths, "-Zunstable-options", "--test-threads=1"]
        runtime = PROJECT / "target/debug/libzeusm_cpu.so"
        variables = OF_RUST | {"ZEUSM_CPU_LIBRARY": runtime}
        self.command = lambda *words: root.command(*self.start, *words, **variables)
        listed = output(self.command("--list", "--format=terse")).splitlines()
        return [line.removesuffix(": test") for line in listed if line.endswith(": test")]

    def run(self, names, limit, log):
        def command(names, folder):
            return self.command("--format=json", "--exact", *names)

        return processes.run(command, names, limit, RUST, log)


class Pytest:
    """Files of pytest, below a folder of the project, in an environment."""

    # zeusm as a plugin: its runtime is there before SYCL lists its devices.
    PLUGINS = ("-p", "zeusm", "-p", "reported", "-p", "no:cacheprovider")
    OPTIONS = ("-m", "pytest", *PLUGINS, "-q", "--tb=short")

    def __init__(self, environment, folder, files, **variables):
        self.environment, self.files = PROJECT / environment, [f"{folder}/{file}" for file in files]
        self.variables = {"PYTHONPATH": PROJECT / "tests/pocl"} | variables

    def prepare(self, root):
        """The names of its tests, which are collected there."""
        start = [self.environment / "bin/python", *self.OPTIONS]
        self.command = lambda *words: root.command(*start, *words, **self.variables)
        listed = output(self.command("--collect-only", *self.files)).splitlines()
        return [line for line in listed if "::" in line]

    def run(self, names, limit, log):
        def command(names, _):
            return self.command(f"@{file_of(names)}")

        return processes.run(command, names, limit, PYTEST, log)
