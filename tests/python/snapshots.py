"""Reads snapshots of memory. The programs of the tests have this file's text before their own."""

import gc
import os
import random
import sys
import threading
import time

import zeusm.memory as zm

__all__ = ["gc", "os", "random", "sys", "threading", "time", "zm"]


def rows(snapshot, table):
    columns = snapshot[table]
    assert len({len(column) for column in columns.values()}) == 1, columns.keys()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def events(snapshot, *actions):
    names = snapshot["actions"]
    found = [event | {"action": names[event["action"]]} for event in rows(snapshot, "events")]
    return [event for event in found if not actions or event["action"] in actions]


def frames(snapshot, stack):
    table = rows(snapshot, "frames")
    found = [table[frame] for frame in snapshot["stacks"][stack]] if stack >= 0 else []
    functions = snapshot["functions"]
    return [(functions[frame["function"]], frame["line"]) for frame in found]


CLASSES = {"host": zm.MemoryUSMHost, "device": zm.MemoryUSMDevice, "shared": zm.MemoryUSMShared}
SIZES = [1, 64, 100, 1000, 4096, 5000, 70_000, 300_000, 1 << 20, (1 << 20) + 1, 3 << 20]


def live(snapshot):
    blocks = rows(snapshot, "blocks")
    kinds = snapshot["kinds"]
    return {block["address"]: (block["size"], kinds[block["kind"]]) for block in blocks}


def replayed(snapshot):
    """Return the blocks that the events leave; each address has one live block at a time."""
    blocks = {}
    for event in events(snapshot, "allocate", "free"):
        if event["action"] == "allocate":
            assert event["address"] not in blocks
            blocks[event["address"]] = event["size"]
        else:
            assert blocks.pop(event["address"]) == event["size"]
    return blocks


def check_figures(snapshot, pools):
    """Compare the sums of a snapshot with the statistics of pools, which are told apart by a block of each."""
    blocks, slabs = rows(snapshot, "blocks"), rows(snapshot, "slabs")
    for pool, mark in pools:
        (index,) = {block["pool"] for block in blocks if block["address"] == mark._pointer}
        statistics = pool.statistics()
        of_pool = [block["size"] for block in blocks if block["pool"] == index]
        assert sum(of_pool) == statistics.requested_bytes
        assert len(of_pool) == statistics.used_count
        held = [slab for slab in slabs if slab["pool"] == index]
        assert sum(slab["used"] for slab in held) == statistics.used_bytes
        assert sum(slab["size"] for slab in held) == statistics.total_bytes
    for slab in slabs:
        assert slab["used"] <= slab["size"]
    driver = sum(slab["size"] for slab in slabs)
    taken = {"reserve": 1, "release": -1}
    assert driver == sum(taken[e["action"]] * e["size"] for e in events(snapshot, *taken))
