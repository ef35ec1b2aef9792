"""One program of googletest: its tests, and the result of each.

The tests run in processes of at most a few hundred. One that dies or hangs ends with the test that it was executing, and the
tests behind that run in the next process.
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time

PASSED, SKIPPED, FAILED, DIED, HUNG = "passed", "skipped", "failed", "died", "hung"
# Tests of one process: enough that its start does not count.
SHARD = 200
# What a process does at its end, after its last test, may have an error of its own.
EXIT = "(exit)"
# Seconds for what it does outside of its tests: the start, and what several tests share.
OUTSIDE = 120

# Log lines may stand before them on the same line.
BEGUN = re.compile(rb"\[ RUN      \] (\S+)")
ENDED = re.compile(rb"\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:,| \()")
RESULTS = {b"OK": PASSED, b"FAILED": FAILED, b"SKIPPED": SKIPPED}


def tests(program, environment):
    """The names of its tests, as `--gtest_filter` takes them, without those that their authors disabled."""
    command = [f"./{program.name}", "--gtest_list_tests"]
    run = subprocess.run(
        command, cwd=program.parent, env=environment, capture_output=True, text=True, timeout=300
    )
    suite, found = None, []
    for line in run.stdout.splitlines():
        if heading := re.match(r"([\w/]+\.)(?:\s+#.*)?$", line):
            suite = heading[1]
        elif suite and (name := re.match(r"  ([\w/]+)(?:\s+#.*)?$", line)):
            found.append(suite + name[1])
    if run.returncode or not found:
        raise SystemExit(
            f"{program.name} lists no tests:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
        )
    return [name for name in found if not re.search(r"(?:^|[./])DISABLED_", name)]


def run(program, names, limit, environment, prefix=(), log=None):
    """Run the tests, each for `limit` seconds at most; yield the name and the result of each."""
    left = list(names)
    while left:
        shard, left = left[:SHARD], left[SHARD:]
        done = set()
        for name, result in _process(program, shard, limit, environment, prefix, log):
            done.add(name)
            yield name, result
        rest = [name for name in shard if name not in done]
        if len(rest) == len(shard):
            yield rest.pop(0), DIED
        left = rest + left


def _process(program, names, limit, environment, prefix, log):
    """Run tests in one process, until it ends by itself, dies or hangs."""
    with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
        flags.write(f"--gtest_filter={':'.join(names)}\n--gtest_color=no\n")
        flags.flush()
        process = subprocess.Popen(
            [*prefix, f"./{program.name}", f"--gtest_flagfile={flags.name}"],
            cwd=program.parent,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield from _results(process, names, limit, log)
        finally:
            # Its helpers are of its group, and may outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()


def _results(process, names, limit, log):
    """The results that the process's lines tell, the last of which may be how it ended."""
    current, wanted = None, set(names)
    for line in _lines(process, limit):
        if line is None:
            yield current or EXIT, HUNG
            return
        if log:
            log.write(line)
        if begun := BEGUN.search(line):
            current = begun[1].decode()
        elif current and (ended := ENDED.search(line)) and ended[2].decode() == current:
            wanted.discard(current)
            yield current, RESULTS[ended[1]]
            current = None
    code = process.wait()
    if current:
        yield current, DIED
    elif not wanted and code not in (0, 1):
        yield EXIT, DIED


def _lines(process, limit):
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
                if BEGUN.search(line):
                    end = time.monotonic() + limit
                elif ENDED.search(line):
                    end = time.monotonic() + OUTSIDE
                yield line + b"\n"
    yield None
