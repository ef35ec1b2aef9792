"""One process of the soak: threads run random programs of dpnp, dpctl and zeusm, and compare each array with NumPy's.

The integers wrap in both, so every result has one right value. One thread at a time calls dpnp and dpctl, which hang otherwise
(docs/cpu.md), but their work is in flight on many queues at once, and zeusm is called by all threads.
"""

import argparse
import collections
import contextlib
import faulthandler
import gc
import itertools
import json
import os
import threading
import time

import numpy as np
import zeusm
import zeusm.memory

# isort: split
import dpctl
import dpctl.memory
import dpnp

CLASSES = {
    "device": zeusm.memory.MemoryUSMDevice,
    "shared": zeusm.memory.MemoryUSMShared,
    "host": zeusm.memory.MemoryUSMHost,
}
KINDS = list(CLASSES)
DTYPES = [np.int32, np.int64]
LARGEST = 1 << 16  # elements
ARRAYS = 4  # of each thread
# Arrays and temporaries of eight threads, in pools that keep what was used most.
MOST_GROWTH = 96 << 20
# SYCL's cache of kernels grows with each launch in a context of several devices, by about 100 bytes, and dpctl leaks 240 bytes
# when an array moves to another queue: 230 bytes for an average step on five devices.
GROWTH_OF_A_STEP = 256
SYCL = threading.Lock()  # to call dpnp and dpctl


class Pair:
    """An array of dpnp and NumPy's with the same elements."""

    def __init__(self, model, queue, kind):
        self.model = model
        self.peer = dpnp.asarray(model, sycl_queue=queue, usm_type=kind)

    def check(self):
        """Compare every element."""
        found = dpnp.asnumpy(self.peer)
        assert found.dtype == self.model.dtype
        wrong = np.flatnonzero(found != self.model)
        assert not len(wrong), f"{len(wrong)} of {found.size} wrong, from {wrong[0]} on"


class Program:
    """A random program, which has arrays on all queues."""

    def __init__(self, seed, queues):
        self.random = np.random.default_rng(seed)
        self.queues = queues
        # Without work of dpnp, for whose end a thread must not wait without the lock.
        self.own_queues = [dpctl.SyclQueue(queue.sycl_device) for queue in queues]
        self.history = collections.deque(maxlen=20)
        self.count = 0
        self.pairs = [self.pair() for _ in range(ARRAYS)]

    def pair(self, dtype=None, queue=None):
        size = int(2 ** self.random.uniform(0, np.log2(LARGEST)))
        dtype = dtype or self.random.choice(DTYPES)
        model = self.random.integers(-1000, 1000, size).astype(dtype)
        return Pair(model, queue or self.queue(), self.random.choice(KINDS))

    def warm_up(self):
        """Compile the kernels, and load packages: dpnp's first assignment hangs with two threads."""
        for dtype, queue, step in itertools.product(DTYPES, self.queues, STEPS):
            self.pairs[0] = self.pair(dtype, queue)
            self.step(step, 0)

    def queue(self):
        return self.random_of(self.queues)

    def random_of(self, queues):
        return queues[self.random.integers(len(queues))]

    def random_step(self):
        self.step(STEPS[self.random.integers(len(STEPS))], self.random.integers(ARRAYS))

    def step(self, step, place):
        """Run a step on one array."""
        self.history.append(f"{step.__name__}({place})")
        with contextlib.nullcontext() if step is zeusm_copies else SYCL:
            step(self, place)
        self.count += 1

    def finish(self):
        with SYCL:
            for pair in self.pairs:
                pair.check()


def replace(program, place):
    program.pairs[place] = program.pair()


def check(program, place):
    program.pairs[place].check()


def elementwise(program, place):
    pair, number = program.pairs[place], int(program.random.integers(1, 9))
    pair.peer = number - pair.peer * pair.peer
    pair.model = number - pair.model * pair.model


def in_place(program, place):
    pair, number = program.pairs[place], int(program.random.integers(1, 9))
    pair.peer += number
    pair.model += number


def sort(program, place):
    pair = program.pairs[place]
    pair.peer = dpnp.sort(pair.peer)
    pair.model = np.sort(pair.model)


def scan(program, place):
    pair = program.pairs[place]
    pair.peer = dpnp.cumsum(pair.peer, dtype=pair.model.dtype)
    pair.model = np.cumsum(pair.model, dtype=pair.model.dtype)


def reverse(program, place):
    pair = program.pairs[place]
    pair.peer = dpnp.copy(pair.peer[::-1], order="C")
    pair.model = pair.model[::-1].copy()


def assign(program, place):
    pair = program.pairs[place]
    start, end = sorted(program.random.integers(0, pair.model.size + 1, 2).tolist())
    # SYCL's first adapter may hang if the queue is busy (docs/limits.md).
    pair.peer.sycl_queue.wait()
    pair.peer[start:end:3] = 7
    pair.model[start:end:3] = 7


def reduce(program, place):
    pair = program.pairs[place]
    assert int(dpnp.sum(pair.peer)) == int(np.sum(pair.model, dtype=np.int64))
    assert int(dpnp.max(pair.peer)) == int(np.max(pair.model))


def move(program, place):
    """To another queue. A view of the same memory is not ordered behind the queue before, on any device."""
    pair = program.pairs[place]
    pair.peer.sycl_queue.wait()
    pair.peer = pair.peer.to_device(program.queue())


def copy_behind_barriers(program, place):
    """Two copies of dpctl's, each ordered behind what the queue has in flight by a barrier."""
    pair = program.pairs[place]
    queue, size = pair.peer.sycl_queue, pair.model.nbytes
    memories = [dpctl.memory.MemoryUSMShared(size, queue=queue) for _ in range(2)]
    source = pair.peer.get_array().usm_data
    event = queue.memcpy_async(memories[0], source, size, [queue.submit_barrier()])
    event = queue.memcpy_async(memories[1], memories[0], size, [queue.submit_barrier([event])])
    event.wait()
    assert bytes(memories[1].copy_to_host()) == pair.model.tobytes()


def zeusm_copies(program, place):
    """From the host to one queue's memory, on to another's, and back, waiting once."""
    pair = program.pairs[place]
    size = pair.model.nbytes
    first, second = (
        CLASSES[program.random.choice(KINDS)](size, queue=program.random_of(program.own_queues))
        for _ in range(2)
    )
    first.copy_from_host_async(pair.model)
    second.copy_from_device_async(first)
    assert bytes(second.copy_to_host()) == pair.model.tobytes()
    first.memset(program.count % 256)
    second.copy_from_device(first)
    assert bytes(second.copy_to_host()) == bytes([program.count % 256]) * size


def shared_with_dpnp(program, place):
    """dpnp computes in zeusm's memory."""
    pair = program.pairs[place]
    array = zeusm.asarray(pair.model, usm_type=program.random.choice(KINDS))
    peer = dpnp.from_dlpack(array)
    peer += 1
    peer.sycl_queue.wait()
    assert np.array_equal(array.copy_to_host(), pair.model + 1)


STEPS = [
    replace,
    check,
    elementwise,
    in_place,
    sort,
    scan,
    reverse,
    assign,
    reduce,
    move,
    copy_behind_barriers,
    zeusm_copies,
    shared_with_dpnp,
]


def resident():
    """The bytes that are resident in memory."""
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def steps_of(programs):
    return sum(program.count for program in programs)


def run(program, deadline, failures):
    """Run steps until the deadline, or until any thread's failure."""
    try:
        while time.monotonic() < deadline and not failures:
            program.random_step()
        program.finish()
    except BaseException as error:
        failures.append(f"{error!r} after {', '.join(program.history)}")


def run_all(programs, seconds):
    failures = []
    deadline = time.monotonic() + seconds
    threads = [
        threading.Thread(target=run, args=(program, deadline, failures)) for program in programs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit("\n".join(failures))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    # Where each thread is, if it hangs.
    faulthandler.dump_traceback_later(options.seconds * 4 + 240)
    queues = [dpctl.SyclQueue(device) for device in dpctl.get_devices(backend="level_zero")]
    programs = [Program([options.seed, number], queues) for number in range(options.threads)]
    programs[0].warm_up()
    # On a busy machine the pools need half of the time to reach their size.
    run_all(programs, options.seconds / 2)
    before, steps_before = resident(), steps_of(programs)
    run_all(programs, options.seconds / 2)
    growth, steps = resident() - before, steps_of(programs)
    most = MOST_GROWTH + GROWTH_OF_A_STEP * (steps - steps_before)
    assert growth < most, f"{growth >> 20} MiB more are resident than after one half"
    print(json.dumps({"steps": steps, "devices": len(queues), "growth": growth}))


if __name__ == "__main__":
    main()
