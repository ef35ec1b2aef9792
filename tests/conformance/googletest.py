"""One program of googletest: its tests, and the result of each."""

import re
import subprocess

import processes
from processes import FAILED, PASSED, SKIPPED

MARKS = processes.Marks(
    # Log lines may stand before them on the same line.
    begun=re.compile(rb"\[ RUN      \] (?P<name>\S+)"),
    ended=re.compile(rb"\[ +(?P<result>OK|FAILED|SKIPPED) +\] (?P<name>\S+?)(?:,| \()"),
    results={b"OK": PASSED, b"FAILED": FAILED, b"SKIPPED": SKIPPED},
)


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

    def command(names, folder):
        flags = folder / "flags"
        flags.write_text(f"--gtest_filter={':'.join(names)}\n--gtest_color=no\n")
        return [*prefix, f"./{program.name}", f"--gtest_flagfile={flags}"]

    return processes.run(command, names, limit, MARKS, log, cwd=program.parent, env=environment)
