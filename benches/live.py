"""The time of operations beside a million live objects, compared with a thousand, and that of a snapshot of them."""

import time
from functools import partial
from statistics import median

import zeusm
import zeusm.memory as zm
from compare import ROUNDS, report
from zeusm._bench.alternate import alternate, medians

SIZE = 64
FEW, MANY = 1000, 1_000_000


def allocate(pool):
    """More blocks at a time than are cached for a thread."""
    return [pool.malloc(SIZE) for _ in range(100)]


def operations(pool, live):
    """The same few objects each time: the processor's cache misses for a million are not what is compared."""
    pointers = [memory._pointer for memory in live[:100]]

    def attributes():
        for pointer in pointers:
            zeusm.pointer_attributes(pointer)

    return {
        "allocate": partial(allocate, pool),
        "pointer_attributes": attributes,
        "statistics": pool.statistics,
    }


def growth(peers):
    """Reports the time of each operation beside many objects divided by its time beside few."""
    for name in peers["many"]:
        functions = {peer: each[name] for peer, each in peers.items()}
        times = medians(alternate(functions, 4 * ROUNDS, 0.005))
        title = f"Python, {name}: 10^6 live blocks beside 10^3"
        report("growth", title, "×", {"zeusm": times["many"] / times["few"]})  # noqa: RUF001


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    pools = {"few": zm.MemoryPool("shared"), "many": zm.MemoryPool("shared")}
    live = {
        name: [pools[name].malloc(SIZE) for _ in range(count)]
        for name, count in (("few", FEW), ("many", MANY))
    }
    growth({name: operations(pool, live[name]) for name, pool in pools.items()})
    report(
        "snapshot of 10^6 blocks",
        "",
        "s",
        {"zeusm": median(seconds(zm.snapshot) for _ in range(3))},
    )


if __name__ == "__main__":
    main()
