"""What a process pays: time to import, and resident memory for live objects. Each in interpreters of its own."""

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
    """What this program prints, asked so in another interpreter."""
    command = [sys.executable, __file__, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def import_time(peer):
    """Seconds."""
    start = time.perf_counter()
    __import__(f"{peer}.memory")
    return time.perf_counter() - start


def resident(peer, kind):
    """Bytes of this process for each live allocation, beyond those asked for."""
    import zeusm.memory  # noqa: F401 (before SYCL)

    # isort: split
    import dpctl.memory  # noqa: F401

    def now():
        gc.collect()
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    make = getattr(sys.modules[f"{peer}.memory"], f"MemoryUSM{kind}")
    first = make(SIZE)  # With all that is made once.
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
