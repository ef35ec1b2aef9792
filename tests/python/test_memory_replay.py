"""`zeusm memory replay`: recorded histories by the real allocator. The same allocation fails, with the limit of the recording."""

import json
import random
import re
import subprocess
import sys
from argparse import Namespace

import pytest
import zeusm.memory as zm
from histories import simulate
from zeusm._pictures.allocator import report, run, smallest_limit, steps
from zeusm._pictures.file import parse
from zeusm._pictures.replay import replay

pytestmark = pytest.mark.once

CLASSES = {
    "host": zm.MemoryUSMHost,
    "device": zm.MemoryUSMDevice,
    "shared": zm.MemoryUSMShared,
}


def recorded(seed, limit=None):
    """The history of a random program that ends at its first failure, and whether an allocation failed."""
    numbers = random.Random(seed)
    with zm.record_history() as history:
        pool = zm.MemoryPool(numbers.choice(list(CLASSES)), limit=limit)
        kept = []
        try:
            for _ in range(120):
                match numbers.randrange(10):
                    case 0 | 1 | 2 if kept:
                        del kept[numbers.randrange(len(kept))]
                    case 4:
                        kept.append(
                            CLASSES[pool.usm_type](numbers.randrange(1, 1 << 14), pool=False)
                        )
                    case _:
                        kept.append(pool.malloc(int(2 ** numbers.uniform(4, 19))))
        except zm.USMAllocationError:
            failed = True
        else:
            failed = False
        found = replay(parse(history.snapshot()))
    return found, failed


def options(**changes):
    defaults = {"kind": None, "pool": "recorded", "device": None, "limit": None}
    return Namespace(**{**defaults, "smallest_limit": False, **changes})


def failures_of(found):
    fail = found.history.actions.index("fail")
    return [row for row, action in enumerate(found.history.events.action) if action == fail]


def events_of(found):
    """What the pools did: the actions, with their sizes and pools."""
    events, actions = found.history.events, found.history.actions
    rows = zip(events.action, events.size, events.pool, strict=True)
    return [(actions[action], size, pool) for action, size, pool in rows]


def test_the_same_allocation_fails_in_100_histories():
    limit = 2 << 20
    failed = 0
    for seed in range(100):
        found, has_failed = recorded(seed, limit)
        todo = steps(found, None, "recorded")
        with zm.record_history() as history:
            results = [run(todo, None, limit)[1] for _ in range(2)]
            again = replay(parse(history.snapshot()))
        wanted = events_of(found)
        assert events_of(again)[: len(wanted)] == wanted, seed
        rows = [result and result[0] for result in results]
        assert rows == [failures_of(found)[0] if has_failed else None] * 2, seed
        failed += has_failed
        if has_failed:
            assert "limit" in results[0][1]
            assert run(todo, None, 1 << 30)[1] is None
    assert 20 < failed < 100, failed


@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_limit_passes_and_a_page_less_does_not(seed):
    found, _ = recorded(seed)
    todo = steps(found, None, "one")
    uses, failed = run(todo, None, None)
    assert failed is None
    ((_, use),) = uses.items()
    least = smallest_limit(todo, None, use)
    assert use.peak <= least <= use.held
    assert run(todo, None, least)[1] is None
    assert run(todo, None, least - 1)[1] is not None


def test_what_the_pools_held():
    """The peaks are those of the program."""
    with zm.record_history() as history:
        pool = zm.MemoryPool("device")
        kept = [pool.malloc(1000) for _ in range(100)]
        del kept[:]
        kept.append(pool.malloc(5000))
        held = pool.total_bytes()
    found = replay(parse(history.snapshot()))
    ((key, use),) = run(steps(found, None, "recorded"), None, None)[0].items()
    assert key[0] == "device"
    assert (use.live, use.peak, use.held) == (5000, 100_000, held)
    lines, passed = report(found, options())
    assert passed
    assert lines[1].endswith(
        f"97.66 KiB live at most, {held >> 10} KiB held, fragmentation {held / 100_000:.2f}"
    )


def test_blocks_from_before_the_recording_are_there_first():
    pool = zm.MemoryPool("shared")
    older = pool.malloc(1 << 20)
    with zm.record_history() as history:
        del older
        kept = pool.malloc(10_000)
    found = replay(parse(history.snapshot()))
    del kept
    assert run(steps(found, None, "recorded"), None, 1 << 19)[1][0] == -1
    lines, passed = report(found, options(limit=1 << 19))
    assert not passed
    assert "before the recording" in lines[0]


@pytest.mark.parametrize("kind", CLASSES)
def test_another_kind_and_another_pool(kind):
    found = replay(parse(simulate(300, seed=4)))
    for pool, numbers in (("recorded", {0, 1, 2}), ("one", {0}), ("none", {-1})):
        uses, failed = run(steps(found, kind, pool), None, None)
        assert failed is None
        assert uses.keys() == {(kind, number) for number in numbers}


def zeusm(*arguments):
    command = [sys.executable, "-m", "zeusm", "memory", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


RECORDED = """
import sys
import zeusm.memory as zm

with zm.record_history() as history:
    pool = zm.MemoryPool("device")
    kept = [pool.malloc(200_000) for _ in range(20)]
history.save(sys.argv[1])
"""


def test_the_command(tmp_path, fresh):
    path = tmp_path / "history.json"
    fresh(RECORDED, path)
    done = zeusm(path, "--smallest-limit")
    assert done.returncode == 0, done.stderr
    least = int(re.search(r"smallest limit (\d+) bytes", done.stdout)[1])
    assert zeusm(path, "--limit", least).returncode == 0
    lower = zeusm(path, "--limit", least - 4096)
    assert lower.returncode == 1
    row = int(re.search(r"event (\d+), at .*, by .* \(<string>:7\)\n", lower.stdout)[1])
    history = json.loads(path.read_text())
    assert history["actions"][history["events"]["action"][row]] == "allocate"
    assert "limit of" in lower.stdout
    assert zeusm(path, "--limit", least - 4096).stdout == lower.stdout
    without = zeusm(path, "--pool", "none", "--kind", "host")
    assert without.stdout.splitlines()[1] == "host, pool none: 3.815 MiB live at most"
    for wrong, said in (
        (["--pool", "none", "--limit", 1], "a limit is a pool's"),
        (["--limit", -1], "limit"),
        (["--limit", 1 << 70], "limit"),
        (["--limit", 1, "--smallest-limit"], "not allowed with"),
        (["--device", "no such device"], "no such device"),
    ):
        done = zeusm(path, *wrong)
        assert done.returncode == 2, wrong
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    for damaged in ({}, history | {"kinds": ["a", "b", "c"]}):
        path.write_text(json.dumps(damaged))
        done = zeusm(path, "--pool", "none")
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
