"""dpnp's own tests on `level_zero:cpu` and on `opencl:cpu`: each file, no failure on the first that the second has not.

Both devices execute kernels by the same OpenCL runtime, and oneMKL takes its path for processors on both, so a difference is the
Level Zero runtime's.
"""

import argparse
import os
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from suites import ENDED, OPTIONS, files, run

OURS, THEIRS = "level_zero:cpu", "opencl:cpu"
# Loaded first, zeusm's runtime serves as SYCL's Level Zero loader.
PLUGINS = {OURS: ["-p", "zeusm.memory"], THEIRS: []}
# The environment's OpenCL runtime, which zeusm finds by itself.
FOLDER = Path(sys.prefix) / "lib"
LIBRARY = str(FOLDER / "libintelocl.so")
OPENCL = {"OCL_ICD_FILENAMES": LIBRARY, "OCL_ICD_VENDORS": LIBRARY, "LD_LIBRARY_PATH": str(FOLDER)}
VARIABLES = {OURS: {"ZEUSM_CPU_DEVICES": "1+cpu"}, THEIRS: OPENCL}


def outcomes(device, path, seconds):
    """Run a file on a device; return the number of tests that passed, and the names of those that failed or did not end."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            *OPTIONS,
            *PLUGINS[device],
            f"--junitxml={results}",
            path,
        ]
        environment = os.environ | VARIABLES[device] | {"ONEAPI_DEVICE_SELECTOR": device}
        code, _ = run(command, folder, seconds, environment)
        if code not in ENDED or not results.exists():
            return 0, {f"the file: exit code {code}"}
        cases = list(ElementTree.parse(results).iter("testcase"))
    failed = {
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases) - len(failed) - skipped, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--timeout", type=float, default=1800, help="seconds for each file and device"
    )
    parser.add_argument("names", nargs="*", help="only files with one of these in their names")
    options = parser.parse_args()
    passed, wrong = [0, 0], []
    with ThreadPoolExecutor(2) as both:
        for name, path in files("dpnp"):
            if options.names and not any(part in name for part in options.names):
                continue
            start = time.monotonic()
            started = [
                both.submit(outcomes, device, path, options.timeout) for device in (OURS, THEIRS)
            ]
            ours, theirs = [one.result() for one in started]
            passed = [passed[0] + ours[0], passed[1] + theirs[0]]
            print(
                f"{name} {time.monotonic() - start:.0f}s passed {ours[0]} {theirs[0]} failed {len(ours[1])} {len(theirs[1])}",
                flush=True,
            )
            wrong += sorted(f"{name} {test}" for test in ours[1] - theirs[1])
            for test in sorted(ours[1] ^ theirs[1]):
                print(f"  {OURS if test in ours[1] else THEIRS} only: {test}", flush=True)
    print(f"passed: {passed[0]} on {OURS}, {passed[1]} on {THEIRS}")
    if wrong:
        raise SystemExit("\n".join([f"failures of {OURS} only:", *wrong]))


if __name__ == "__main__":
    main()
