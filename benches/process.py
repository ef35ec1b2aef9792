"""The costs of a process: import time, its first kernel, and resident memory of live objects, each in new interpreters."""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time

from compare import ROUNDS, report

PEERS = ("zeusm", "dpctl")
KINDS = ("Device", "Shared", "Host")
# The devices that run kernels.
DEVICES = {"zeusm": "level_zero:gpu", "OpenCL": "opencl:cpu"}
SIZE = 64
COUNT = 100_000


def fresh(*arguments, **variables):
    """The number that this program prints for the arguments, in a new interpreter."""
    command = [sys.executable, __file__, *arguments]
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | variables
    )
    return float(run.stdout)


def import_time(peer):
    """The import time of a peer in seconds."""
    start = time.perf_counter()
    __import__(f"{peer}.memory")
    return time.perf_counter() - start


def first(peer, operation):
    """The time in seconds of the first kernels of a process: `add`, or `sort`."""
    import opencl  # noqa: F401 (before SYCL)
    import zeusm  # noqa: F401 (before SYCL)

    # isort: split
    import dpnp
    import numpy as np

    numbers = np.arange(1000, dtype="i4")[::-1]
    start = time.perf_counter()
    x = dpnp.asarray(numbers, device=DEVICES[peer])
    result = x + x if operation == "add" else dpnp.sort(x)
    result.sycl_queue.wait()
    return time.perf_counter() - start


def first_kernels():
    """Reports the first kernels of a process after one in which zeusm's runtime has built them."""
    with tempfile.TemporaryDirectory() as folder:
        for operation in ("add", "sort"):
            times = {peer: [] for peer in DEVICES}
            fresh("first", "zeusm", operation, ZEUSM_CACHE_DIR=folder)
            for _ in range(ROUNDS):
                for peer in DEVICES:
                    times[peer].append(fresh("first", peer, operation, ZEUSM_CACHE_DIR=folder))
            values = {peer: statistics.median(each) for peer, each in times.items()}
            report("first kernel of a process", f"{operation} 1000 int32", "s", values)


def resident(peer, kind):
    """The resident bytes of this process per live allocation, beyond the requested ones."""
    import zeusm.memory  # noqa: F401 (before SYCL)

    # isort: split
    import dpctl.memory  # noqa: F401

    def now():
        gc.collect()
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    make = getattr(sys.modules[f"{peer}.memory"], f"MemoryUSM{kind}")
    first = make(SIZE)  # Includes one-time initialisation.
    live = [first] * COUNT
    before = now()
    for index in range(COUNT):
        live[index] = make(SIZE)
    return (now() - before) / COUNT - SIZE


def main():
    if sys.argv[1:]:
        what, *arguments = sys.argv[1:]
        print({"import": import_time, "first": first, "resident": resident}[what](*arguments))
        return
    times = {peer: [] for peer in PEERS}
    for _ in range(ROUNDS):
        for peer in PEERS:
            times[peer].append(fresh("import", peer))
    medians = {peer: statistics.median(each) for peer, each in times.items()}
    report("import", "the module memory", "s", medians)
    first_kernels()
    for kind in KINDS:
        values = {peer: fresh("resident", peer, kind) for peer in PEERS}
        report("resident bytes beyond 64 B", kind.lower(), "B", values)


if __name__ == "__main__":
    main()
