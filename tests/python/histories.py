"""Allocation histories that a simulated pool makes, for tests of what reads them."""

import random

KINDS = ["host", "device", "shared"]
ACTIONS = ["allocate", "free", "reserve", "release", "trim", "fail"]
EVENT = ["time", "action", "address", "size", "kind", "device", "pool", "thread", "stack", "hit"]
BLOCK = ["address", "size", "kind", "device", "pool", "stack", "time"]
SLAB = ["address", "size", "kind", "device", "pool", "used", "block"]
OPERATION = ["time", "duration", "name", "device", "queue", "size"]
SLAB_SIZE = 1 << 20


def empty(**changes):
    """A history without events."""
    return {
        "format": "zeusm-memory-history",
        "version": 1,
        "zeusm": "0.1.0",
        "process": {"pid": 4711, "argv": ["train.py"], "python": "3.11.2", "host": "node"},
        "clock": {"start": 1_790_000_000_000_000_000},
        "devices": [{"name": "a GPU", "index": 0, "total": 1 << 30}],
        "kinds": KINDS,
        "pools": [{"kind": kind, "device": 0 if kind else -1, "context": 0} for kind in range(3)],
        "threads": [{"id": 140_000_000_000_001, "name": "MainThread"}],
        "files": [],
        "functions": [],
        "frames": {"file": [], "line": [], "function": []},
        "stacks": [],
        "actions": ACTIONS,
        "events": {name: [] for name in EVENT},
        "failures": [],
        "blocks": {name: [] for name in BLOCK},
        "slabs": {name: [] for name in SLAB},
        "operations": {name: [] for name in OPERATION},
        "dropped": 0,
        "dropped_operations": 0,
    } | changes


def add_stacks(history, number):
    """Stacks of a program with `number` places that allocate."""
    history["files"] = ["/home/a/train.py", "/home/a/model/layers.py"]
    history["functions"] = ["<module>", *(f"layer_{each}" for each in range(number))]
    frames = [(0, 10, 0), *((1, 100 + each, 1 + each) for each in range(number))]
    history["frames"] = {
        name: [frame[column] for frame in frames]
        for column, name in enumerate(("file", "line", "function"))
    }
    history["stacks"] = [[1 + each, 0] for each in range(number)]


class Simulated:
    """A history that grows by calls like a program's."""

    def __init__(self, seed=0, stacks=12):
        self.random = random.Random(seed)
        self.history = empty()
        add_stacks(self.history, stacks)
        self.now = 0
        self.next = {0: 0x7F00_0000_0000, 1: 0xFFFF_8000_0000_0000, 2: 0x7E00_0000_0000}
        self.returned = {}  # (kind, length): addresses, to be used again
        self.slabs = {}  # address: [kind, size, slot, free slots]
        self.live = {}  # address: (size, kind, stack, time)

    def event(self, action, address, size, kind, stack=-1, hit=-1):
        self.now += self.random.randrange(200, 3000)
        row = (
            self.now,
            ACTIONS.index(action),
            address,
            size,
            kind,
            0 if kind else -1,
            kind,
            0,
            stack,
            hit,
        )
        for name, value in zip(EVENT, row, strict=True):
            self.history["events"][name].append(value)

    def allocate(self, size, kind, stack):
        slot = 1 << max(9, (size - 1).bit_length())
        hit = 1
        if slot > SLAB_SIZE // 2:
            slot = 0
        address = next(
            (
                at
                for at, (k, s, c, free) in self.slabs.items()
                if k == kind and c == slot and free and s >= size
            ),
            None,
        )
        if address is None:
            hit = 0
            length = SLAB_SIZE if slot else -(-size // 4096) * 4096
            if self.returned.get((kind, length)):
                address = self.returned[kind, length].pop()
            else:
                address = self.next[kind]
                self.next[kind] += length + (1 << 24)
            free = list(range(address, address + length, slot)) if slot else [address]
            self.slabs[address] = [kind, length, slot, free]
            self.event("reserve", address, length, kind, stack)
        block = self.slabs[address][3].pop(0)
        self.event("allocate", block, size, kind, stack, hit)
        self.live[block] = (size, kind, stack, self.now)
        return block

    def free(self, block):
        size, kind, _, _ = self.live.pop(block)
        self.event("free", block, size, kind, 0)
        slab = max(at for at in self.slabs if at <= block)
        self.slabs[slab][3].append(block)

    def trim(self, kind):
        """Release the slabs without blocks."""
        total = 0
        for address, (of, length, slot, free) in list(self.slabs.items()):
            if of == kind and len(free) == (length // slot if slot else 1):
                del self.slabs[address]
                self.returned.setdefault((of, length), []).append(address)
                self.event("release", address, length, kind)
                total += length
        self.event("trim", 0, total, kind)

    def fail(self, size, kind, stack, free=-1):
        self.event("fail", 0, size, kind, stack, 0)
        in_use = sum(each[0] for each in self.live.values() if each[1] == kind)
        held = sum(slab[1] for slab in self.slabs.values() if slab[0] == kind)
        message = f"zeMemAllocDevice of {size} bytes: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"
        self.history["failures"].append(
            {
                "event": len(self.history["events"]["time"]) - 1,
                "message": message,
                "cached": held - in_use,
                "in_use": in_use,
                "free": free,
            }
        )

    def finish(self):
        """The history with the blocks and slabs that are there now."""
        table = {name: [] for name in BLOCK}
        for address, (size, kind, stack, time) in sorted(self.live.items()):
            row = (address, size, kind, 0 if kind else -1, kind, stack, time)
            for name, value in zip(BLOCK, row, strict=True):
                table[name].append(value)
        self.history["blocks"] = table
        slabs = {name: [] for name in SLAB}
        for address, (kind, length, slot, _) in sorted(self.slabs.items()):
            used = sum(
                size for at, (size, *_) in self.live.items() if address <= at < address + length
            )
            row = (address, length, kind, 0 if kind else -1, kind, used, slot)
            for name, value in zip(SLAB, row, strict=True):
                slabs[name].append(value)
        self.history["slabs"] = slabs
        return self.history


def simulate(events=2000, seed=0, failures=2):
    """A history of about so many events."""
    program = Simulated(seed)
    chance = program.random
    while len(program.history["events"]["time"]) < events:
        if program.live and chance.random() < 0.42 + len(program.live) / 1500:
            program.free(chance.choice(list(program.live)))
        else:
            size = int(2 ** chance.uniform(4, 21))
            program.allocate(size, chance.choice([0, 1, 1, 1, 2]), chance.randrange(12))
        if chance.random() < 0.002:
            program.trim(chance.randrange(3))
    for _ in range(failures):
        program.fail(64 << 20, 1, 3, free=chance.choice([-1, 5 << 20]))
    return program.finish()
