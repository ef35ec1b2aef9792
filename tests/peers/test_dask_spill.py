"""The results of a Dask worker go from the device to the host, to disk, and back."""

import dataclasses
import gc
import os
import random
import threading

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
import zeusm_dask

PART = 1 << 16


def array(number, usm_type="device"):
    return zeusm.asarray(np.full(PART, number, "u1"), usm_type=usm_type)


def is_array(value, number):
    return value.usm_type == "device" and (value.copy_to_host() == number).all()


@pytest.fixture
def make(tmp_path):
    def make(**limits):
        return zeusm_dask.SpillBuffer(str(tmp_path), **({"device_limit": 3 * PART} | limits))

    return make


@pytest.fixture
def pool():
    """The pool of device memory, without a limit after the test."""
    gc.collect()  # What tests before have left.
    pool = zm.get_pool("device")
    yield pool
    pool.set_limit(None)
    pool.set_failure_callback(None)


def test_the_oldest_results_leave_the_device_and_come_back(make):
    data = make()
    for number in range(6):
        data[number] = array(number)
    assert list(data.device) == [3, 4, 5]
    assert data.device.total_weight == 3 * PART
    assert list(data.host.memory) == [0, 1, 2]
    assert list(data) == list(range(6))
    for number in range(6):
        assert is_array(data[number], number)
        assert data.device.total_weight == 3 * PART
    assert list(data.device) == [3, 4, 5]


def test_the_memory_of_spilled_results_is_freed(make, pool):
    data = make()
    before = pool.used_bytes()
    for number in range(6):
        data[number] = array(number)
    assert pool.used_bytes() - before == 3 * PART
    data.clear()
    assert pool.used_bytes() == before


def test_results_of_the_host_go_to_disk(make, tmp_path):
    data = make(host_limit=3 * PART)
    for number in range(8):
        data[number] = array(number)
    files = os.listdir(tmp_path / "storage")
    assert len(files) == len(data.host.disk) == 3
    assert data.spilled_total.disk > 3 * PART
    for number in range(8):
        assert is_array(data[number], number)
    assert len(data) == 8
    data.clear()
    assert os.listdir(tmp_path / "storage") == []


def test_any_result_is_stored(make):
    data = make(host_limit=PART)
    shared = array(1, "shared")
    data["shared"] = shared
    data["memory"] = zm.MemoryUSMDevice(PART)
    data["list"] = [array(2)]
    data["number"] = 3
    assert list(data.device) == ["memory", "list"]
    assert data["number"] == 3
    assert data["shared"].usm_type == "shared"
    assert is_array(data["list"][0], 2)
    assert type(data["memory"]) is zm.MemoryUSMDevice


def test_a_result_that_cannot_be_pickled_stays(make):
    data = make()
    data["lock"] = [threading.Lock(), array(4)]
    assert list(data.device) == []
    assert is_array(data["lock"][1], 4)


@dataclasses.dataclass
class Result:
    array: zeusm.UsmArray
    host: np.ndarray
    also: object = None


NESTED = {
    "list": lambda part, host: [part, host, part],
    "tuple": lambda part, host: (part, host, part),
    "dictionary": lambda part, host: {"part": part, "host": host, "also": part},
    "dataclass": lambda part, host: Result(part, host, part),
    "lists in a dictionary": lambda part, host: {1: [[part]], 2: (host,), 3: part},
}


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.parametrize("kind", NESTED)
def test_results_within_others_are_spilled(make, pool, kind, disk):
    """The parts leave the device, and come back as they were: what was one object is one again."""
    before = pool.used_bytes()
    data = make(host_limit=PART // 2 if disk else None)
    for number in range(6):
        data[number] = NESTED[kind](array(number), np.full(10, number))
        assert pool.used_bytes() - before <= 3 * PART
    assert list(data.device) == [3, 4, 5]
    assert len(data.host.disk) == (3 if disk else 0)
    for number in range(6):
        found = []
        found.extend(gc.get_referents(data[number], *gc.get_referents(data[number])))
        found.extend(gc.get_referents(*found))
        parts = {id(part): part for part in found if isinstance(part, zeusm.UsmArray)}
        (part,) = parts.values()
        assert is_array(part, number)
        assert any(isinstance(host, np.ndarray) and (host == number).all() for host in found)
    del found, part, parts
    data.clear()
    assert pool.used_bytes() == before


def test_views_count_by_their_base_once(make, pool):
    before = pool.used_bytes()
    data = make()
    whole = array(7)
    for number in range(4):
        data[number] = [whole[number:]]
    data["whole"] = whole
    assert data.device.total_weight == PART
    del whole
    for key in (0, "whole", 2):
        del data[key]
        assert data.device.total_weight == PART
    for number in range(10, 13):
        data[number] = array(number)
    assert list(data.device) == [10, 11, 12]
    assert pool.used_bytes() - before == 3 * PART
    for number in (1, 3):
        assert data[number][0].shape == (PART - number,)
        assert is_array(data[number][0], 7)


def test_the_weight_is_that_of_the_memory_after_any_calls(make):
    """A model: what is on the device are the results there, each memory once, and at most the limit."""
    choose = random.Random(3)
    data = make(device_limit=5 * PART)
    wholes = {}
    for _ in range(1500):
        key = choose.randrange(12)
        action = choose.random()
        if action < 0.5:
            owner = choose.randrange(8)
            if owner not in wholes or choose.random() < 0.3:
                wholes[owner] = array(owner)
            data[key] = [owner, wholes[owner][key:], choose.choice([None, wholes[owner]])]
            if choose.random() < 0.5:
                del wholes[owner]
        elif action < 0.7 and key in data:
            del data[key]
        elif key in data:
            owner, view, _ = data[key]
            assert is_array(view, owner)
        parts = [part for value in data.device.values() for part in value[1:] if part is not None]
        held = {part.base._pointer: part.base.nbytes for part in parts}
        assert data.device.total_weight == sum(held.values()) <= 5 * PART
        assert sum(data.device.weights.values()) == data.device.total_weight


def test_a_key_is_replaced_and_deleted_wherever_it_is(make):
    data = make()
    for number in range(6):
        data[number] = array(number)
    data[0] = 7  # It was spilled.
    data[5] = array(8)
    data[4] = "host"
    assert (data[0], data[4]) == (7, "host")
    assert is_array(data[5], 8)
    data[0] = array(9)
    assert is_array(data[0], 9)
    for number in range(6):
        del data[number]
    assert (len(data), len(data.device), len(data.host)) == (0, 0, 0)
    for missing in (0, "never"):
        assert missing not in data
        with pytest.raises(KeyError):
            data[missing]
        with pytest.raises(KeyError):
            del data[missing]


def test_a_result_larger_than_the_limit_goes_to_the_host(make):
    data = make(device_limit=PART - 1)
    data["large"] = array(1)
    assert len(data.device) == 0
    assert is_array(data["large"], 1)


def test_a_full_disk_keeps_results_on_the_host(make):
    data = make(device_limit=PART, host_limit=PART, max_spill=1)
    for number in range(4):
        data[number] = array(number)
    assert len(data.host.disk) == 0
    for number in range(4):
        assert is_array(data[number], number)


def test_workers_that_are_short_of_memory_write_to_disk(make):
    data = make(device_limit=PART)
    for number in range(3):
        data[number] = array(number)
    assert len(data.fast) == 2
    assert data.evict() >= PART
    assert data.evict() >= PART
    assert len(data.fast) == 0
    assert len(data.host.disk) == 2
    assert is_array(data[0], 0)


def test_a_full_pool_spills_results(make, pool):
    pool.trim()
    data = make(device_limit="1 GB", pool_limit=pool.total_bytes() + 8 * PART)
    limit = pool.get_limit()
    for number in range(20):
        data[number] = array(number)
        assert pool.total_bytes() <= limit
    assert 0 < len(data.device) < 20
    for number in range(20):
        assert is_array(data[number], number)
    before = len(data.device)
    with pytest.raises(zm.USMAllocationError):
        zm.MemoryUSMDevice(16 * PART)  # More than the limit: spilling would not help.
    assert len(data.device) == before
    memory = zm.MemoryUSMDevice(8 * PART)
    assert len(data.device) == 0
    del data, memory
    with pytest.raises(zm.USMAllocationError):
        zm.MemoryUSMDevice(16 * PART)


def test_a_full_pool_spills_results_within_others(make, pool):
    pool.trim()
    data = make(device_limit="1 GB", pool_limit=pool.total_bytes() + 8 * PART)
    for number in range(20):
        data[number] = (array(number), number)
    for number in range(20):
        assert data[number][1] == number
        assert is_array(data[number][0], number)


def test_threads_spill_results_of_each_other(make, pool):
    """Tasks allocate from a full pool while another thread stores and reads results."""
    pool.trim()
    data = make(device_limit="1 GB", host_limit=8 * PART, pool_limit=pool.total_bytes() + 8 * PART)
    errors = []

    def allocate():
        try:
            for _ in range(200):
                zm.MemoryUSMDevice(PART).memset(1)
        except BaseException as error:  # Reported by the main thread.
            errors.append(error)

    threads = [threading.Thread(target=allocate, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(200):
        data[number % 20] = array(number % 20)
        for key in (number % 7, number % 20):
            if key in data:
                assert is_array(data[key], key)
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    assert errors == []
    assert sorted(data) == list(range(20))
