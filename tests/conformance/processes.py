"""Runs the tests of a program in processes that may die or hang.

One that dies or hangs ends with the test that it was executing, and the tests behind that run in the next process.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from re import Pattern

PASSED, SKIPPED, FAILED, DIED, HUNG = "passed", "skipped", "failed", "died", "hung"
GOOD = {PASSED, SKIPPED}
# Tests of one process: enough that its start does not count.
SHARD = 200
# What a process does at its end, after its last test, may have an error of its own.
EXIT = "(exit)"
# Seconds for what it does outside of its tests: the start, and what several tests share.
OUTSIDE = 120


@dataclass(frozen=True)
class Marks:
    """How a program's lines tell of its tests."""

    # The line has the test's `name`, and `ended` also the `result`, which `results` translates.
    begun: Pattern
    ended: Pattern
    results: dict
    # The exit codes of a program whose tests have all ended.
    codes: tuple = (0, 1)


def run(command, names, limit, marks, log=None, **options):
    """Run the tests, each for `limit` seconds at most; yield the name and the result of each.

    `command` makes the command for some tests, and may write files for it to the folder that it gets. `options` are those of
    `subprocess.Popen`.
    """
    left = list(names)
    while left:
        shard, left = left[:SHARD], left[SHARD:]
        done = set()
        for name, result in _process(command, shard, limit, marks, log, options):
            done.add(name)
            yield name, result
        rest = [name for name in shard if name not in done]
        if len(rest) == len(shard):
            yield rest.pop(0), DIED
        left = rest + left


def _process(command, names, limit, marks, log, options):
    """Run tests in one process, until it ends by itself, dies or hangs."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            command(names, Path(folder)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **options,
        )
        try:
            yield from _results(process, names, limit, marks, log)
        finally:
            # Its helpers are of its group, and may outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()


def _results(process, names, limit, marks, log):
    """The results that the process's lines tell, the last of which may be how it ended."""
    current, wanted = None, set(names)
    for line in _lines(process, limit, marks):
        if line is None:
            yield current or EXIT, HUNG
            return
        if log:
            log.write(line)
        if begun := marks.begun.search(line):
            current = begun["name"].decode()
        elif current and (ended := marks.ended.search(line)) and ended["name"].decode() == current:
            wanted.discard(current)
            yield current, marks.results[ended["result"]]
            current = None
    code = process.wait()
    if current:
        yield current, DIED
    elif not wanted and code not in marks.codes:
        yield EXIT, DIED


def _lines(process, limit, marks):
    """The process's lines; `None` once a test has run for `limit` seconds."""
    descriptor, text = process.stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        end = time.monotonic() + OUTSIDE
        while (now := time.monotonic()) < end:
            if not selector.select(min(1, end - now)):
                # A helper that outlives the process keeps the pipe open.
                if process.poll() is not None:
                    return
                continue
            if not (more := os.read(descriptor, 1 << 16)):
                if text:
                    yield text
                return
            *lines, text = (text + more).split(b"\n")
            for line in lines:
                if marks.begun.search(line):
                    end = time.monotonic() + limit
                elif marks.ended.search(line):
                    end = time.monotonic() + OUTSIDE
                yield line + b"\n"
    yield None
