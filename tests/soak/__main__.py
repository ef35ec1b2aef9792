"""Random programs of dpnp, dpctl and zeusm against NumPy, for as long as asked: no wrong element, hang or growth.

Runs processes of `program.py` one after another, with both of SYCL's Level Zero adapters, one device, a GPU and a CPU, and 4 GPUs and 1 to 8 threads.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = Path(__file__).with_name("program.py")
ADAPTERS = ["0", "1"]
DEVICES = ["1", "1+cpu", "4"]
MOST_THREADS = 8


def soak(seconds, each, first_seed):
    """Run processes of `each` seconds until `seconds` are over; the first failure ends it."""
    end = time.monotonic() + seconds
    total = 0
    for seed in itertools.count(first_seed):
        if time.monotonic() >= end:
            break
        # All combinations of adapter and devices in turn.
        adapter, devices = list(itertools.product(ADAPTERS, DEVICES))[seed % 6]
        threads = random.Random(seed).randint(1, MOST_THREADS)
        variables = {"SYCL_UR_USE_LEVEL_ZERO_V2": adapter, "ZEUSM_CPU_DEVICES": devices}
        options = ["--seed", str(seed), "--threads", str(threads), "--seconds", str(each)]
        shown = " ".join(f"{name}={value}" for name, value in variables.items())
        try:
            found = subprocess.run(
                [sys.executable, PROGRAM, *options],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                timeout=each * 4 + 300,  # after the program has printed where its threads are
            )
        except subprocess.TimeoutExpired as expired:
            raise SystemExit(
                f"{shown} {options} hangs\n{(expired.stderr or b'').decode()}"
            ) from None
        print(shown, *options, found.stdout.strip(), flush=True)
        if found.returncode:
            raise SystemExit(f"{found.stderr}\nexit code {found.returncode}")
        total += json.loads(found.stdout)["steps"]
    print(f"{total} steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--each", type=float, default=60, help="seconds of one process")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    soak(options.seconds, options.each, options.seed)


if __name__ == "__main__":
    main()
