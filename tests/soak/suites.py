"""The tests in the wheels of dpctl and dpnp under the checker: no finding, crash or hang in any of their files.

A finding is a false one, or a mistake of a library, which `suites.supp` names. Failed tests are printed and do not count: some of them fail on
other runtimes, too.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

SUPPRESSIONS = Path(__file__).with_suffix(".supp")
OPTIONS = ["-c", "/dev/null", "--rootdir=/", "-q", "-p", "no:cacheprovider"]
# pytest's exit codes: all passed, some failed (also that of an interpreter which could not start), none collected.
ENDED = {0, 1, 5}
SUMMARY = re.compile(r"^(?:\d+ \w+|no tests ran).* in [\d.]+s.*$", re.MULTILINE)


def files(package):
    folder = Path(find_spec(package).origin).parent / "tests"
    found = sorted(folder.rglob("test_*.py"))
    return [(f"{package}/{path.relative_to(folder)}", path) for path in found]


def run(command, folder, seconds, environment=None):
    """Run a command in a folder; return its exit code, `None` if it did not end within `seconds`, and its output."""
    with open(f"{folder}/output", "w+") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
            env=environment,
        )
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        output.seek(0)
        return code, output.read()


def check(path, seconds):
    """Run a file; return whether pytest came to its end within `seconds`, its exit code and last line, and the findings."""
    with tempfile.TemporaryDirectory() as folder:
        checker = ["-m", "zeusm", "check", "--exit-code", "0", "--report", f"{folder}/%p.json"]
        checker += ["--suppressions", SUPPRESSIONS]
        tests = [sys.executable, "-m", "pytest", *OPTIONS, path]
        code, text = run([sys.executable, *checker, *tests], folder, seconds)
        reports = [json.loads(report.read_text()) for report in Path(folder).glob("*.json")]
    summary = SUMMARY.findall(text)
    has_ended = code in ENDED and bool(summary)
    findings = [finding for report in reports for finding in report["findings"]]
    return has_ended, f"{code} {summary[-1] if summary else text[-2000:]}", findings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for each file")
    parser.add_argument("names", nargs="*", help="only files with one of these in their names")
    options = parser.parse_args()
    wrong = []
    for name, path in files("dpctl") + files("dpnp"):
        if options.names and not any(part in name for part in options.names):
            continue
        start = time.monotonic()
        has_ended, summary, findings = check(path, options.timeout)
        print(f"{name} {time.monotonic() - start:.0f}s {len(findings)} {summary}", flush=True)
        for finding in findings:
            print(
                f"  {finding['kind']}: {finding['message']}",
                *finding["stack"]["python"][:5],
                sep="\n    ",
            )
        if findings or not has_ended:
            wrong.append(name)
    if wrong:
        raise SystemExit(f"findings, crashes or hangs in {wrong}")


if __name__ == "__main__":
    main()
