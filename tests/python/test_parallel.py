"""Threads that use zeusm at the same time. A free-threaded interpreter executes their Python code in parallel, any other one their
calls without the GIL.

`make test-free-threaded` runs these tests on a free-threaded Python; ZEUSM_TEST_PARALLEL multiplies the rounds.
"""

import gc
import os
import pickle
import random
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm

pytestmark = pytest.mark.once

ROUNDS = 30 * int(os.environ.get("ZEUSM_TEST_PARALLEL", "1"))
THREADS = 4
CLASSES = zm.MemoryUSMDevice, zm.MemoryUSMShared, zm.MemoryUSMHost


def in_threads(work, count=THREADS):
    """Calls `work(number)` in threads that begin at once, and raises the first error."""
    barrier, errors = threading.Barrier(count), []

    def run(number):
        try:
            barrier.wait(60)
            work(number)
        except BaseException as error:  # Raised by the main thread.
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_the_gil_stays_off():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this interpreter is not free-threaded")
    assert not sys._is_gil_enabled()


def own_program(number, rounds):
    """A random program on memory that no other thread uses, beside plain bytes."""
    chance = random.Random(number)
    for _ in range(rounds):
        size = chance.choice([1, 64, 1000, 4096, 100_000, 300_000])
        memory, model = chance.choice(CLASSES)(size), bytearray(size)
        memory.memset(0)
        events = []
        for _ in range(chance.randrange(1, 12)):
            first = chance.randrange(size)
            last = chance.randrange(first, size) + 1
            part, val = memory[first:last], chance.randrange(256)
            content = bytes([val]) * (last - first)
            match chance.randrange(6):
                case 0:
                    part.memset(val)
                case 1:
                    events.append(part.memset_async(val))
                case 2:
                    events.append(part.copy_from_host_async(content))
                case 3:
                    part.copy_from_host(content)
                case 4:
                    part.copy_from_device(zeusm.asarray(np.frombuffer(content, "u1")))
                case 5:
                    content = bytes(model[first:last])
                    assert pickle.loads(pickle.dumps(part)).tobytes() == content
            model[first:last] = content
            if chance.randrange(4) == 0:
                assert memory.tobytes() == model
        if chance.randrange(2) and events:
            events[-1].wait()
        assert np.asarray(memory.copy_to_host()).tobytes() == model


def test_each_thread_has_its_own_memory():
    in_threads(lambda number: own_program(number, ROUNDS))


def test_memory_moves_between_threads():
    """Objects are allocated, filled and freed by different threads, with a history at times."""
    places = [None] * 64
    gc.collect()  # What other tests have left is not freed meanwhile.
    allocated = zm.get_pool("shared").statistics().used_bytes
    made = []

    def work(number):
        chance = random.Random(number)
        for turn in range(40 * ROUNDS):
            place = chance.randrange(len(places))
            size = chance.choice([64, 64, 640, 6400, 64_000])
            memory = zm.MemoryUSMShared(size)
            memory.memset(size % 251)
            found, places[place] = places[place], memory
            if found is not None:
                assert set(found[:64].tobytes()) == {found.nbytes % 251}
            if number == 0 and turn % 400 == 0:
                zm.record_history(enabled=turn % 800 == 0)
                made.append(zm.snapshot())

    try:
        in_threads(work)
    finally:
        zm.record_history(enabled=False)
    assert len(made) > 1
    places.clear()
    assert zm.get_pool("shared").statistics().used_bytes == allocated


def test_one_object_is_used_by_all():
    """Readers of every kind beside writes of the same value."""
    memory = zm.MemoryUSMShared(4096)
    memory.memset(7)
    array = memory.view("f4")
    whole = bytes([7]) * 4096

    def work(number):
        chance = random.Random(number)
        for _ in range(20 * ROUNDS):
            match chance.randrange(9):
                case 0:
                    assert memory.tobytes() == whole
                case 1:
                    assert bytes(memoryview(memory)) == whole
                case 2:
                    assert memory._pointer == memory[:1]._pointer
                case 3:
                    assert zeusm.from_dlpack(array).copy_to_host().tobytes() == whole
                case 4:
                    memory.memset_async(7)
                case 5:
                    assert zm.as_usm_memory(memory[:64]).tobytes() == whole[:64]
                case 6:
                    assert array[1:9].copy_to_host().tobytes() == whole[:32]
                case 7:
                    memory.copy_from_host(whole)
                case 8:
                    assert not memory.closed

    in_threads(work)


def test_an_object_is_closed_once():
    """A close fails while a memoryview is used, and exactly one thread's close frees the memory."""
    used = zm.get_pool("host").used_bytes()
    for _ in range(4 * ROUNDS):
        memory = zm.MemoryUSMHost(640)
        memory.memset(3)

        def work(number, memory=memory):
            for _ in range(20):
                try:
                    if number % 2:
                        memory.close()
                    else:
                        with memoryview(memory) as view:
                            assert view[639] == 3
                except (BufferError, ValueError) as error:  # Of a close and of a view.
                    if "closed" not in str(error):
                        raise

        in_threads(work, 2)
        memory.close()
        assert memory.closed
    assert zm.get_pool("host").used_bytes() == used


def test_figures_and_limits_beside_allocations():
    pool = zm.MemoryPool("shared", limit=4 << 20)
    kept = [pool.malloc(1 << 20)]
    end = time.monotonic() + 2.0

    def make_room(nbytes):
        return bool(kept) and kept.pop() is not None

    def work(number):
        while time.monotonic() < end:
            match number:
                case 0:
                    figures = pool.statistics()
                    assert figures.used_bytes <= figures.total_bytes <= 4 << 20
                case 1:
                    pool.trim(0)
                    pool.set_failure_callback(make_room)
                case _:
                    with pool.scope() as scope:
                        memory = pool.malloc(1 << 19)
                    assert memory.nbytes == 1 << 19
                    assert scope.report().allocations >= 1

    in_threads(work)
    pool.set_failure_callback(None)
    kept.clear()
    assert pool.used_bytes() == 0
