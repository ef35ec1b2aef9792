"""The costs of a process: import time, and resident memory of live objects. Each is measured in new interpreters."""

import gc
import os
import statistics
import subprocess
import sys
import time

from compare import ROUNDS, report

PEERS = ("zeusm", "dpctl")
KINDS = ("Device", "Shared", "Host")
SIZE = 64
COUNT = 100_000


def fresh(*arguments):
    """The number that this program prints for the arguments, in a new interpreter."""
    command = [sys.executable, __file__, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def import_time(peer):
    """The import time of a peer in seconds."""
    start = time.perf_counter()
    __import__(f"{peer}.memory")
    return time.perf_counter() - start


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
        print({"import": import_time, "resident": resident}[what](*arguments))
        return
    times = {peer: [] for peer in PEERS}
    for _ in range(ROUNDS):
        for peer in PEERS:
            times[peer].append(fresh("import", peer))
    medians = {peer: statistics.median(each) for peer, each in times.items()}
    report("import", "the module memory", "s", medians)
    for kind in KINDS:
        values = {peer: fresh("resident", peer, kind) for peer in PEERS}
        report("resident bytes beyond 64 B", kind.lower(), "B", values)


if __name__ == "__main__":
    main()
