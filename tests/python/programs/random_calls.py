"""Calls zeusm's functions and methods with random arguments, in the order that a seed determines.

python random_calls.py SEED CALLS

Any exception is an answer, except those that Rust's panics and the interpreter's own errors become. The results are arguments
of later calls. The bytes of some memory objects that no argument gives access to must never change.
"""

import copy
import gc
import inspect
import operator
import pickle
import random
import sys
import types

import dpctl
import dpctl.memory
import numpy as np
import zeusm
import zeusm.memory as zm

seed, calls = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)

CLASSES = (zm.MemoryUSMShared, zm.MemoryUSMHost, zm.MemoryUSMDevice)
MODULES = (zeusm, zm)
CONVERSIONS = (
    *(
        np.asarray,
        np.from_dlpack,
        memoryview,
        bytes,
        list,
        len,
        repr,
        bool,
        copy.copy,
        copy.deepcopy,
    ),
    *(zeusm.asarray, zeusm.from_dlpack, zm.as_usm_memory, dpctl.memory.as_usm_memory),
    lambda value: pickle.loads(pickle.dumps(value)),
)
# They change the process or a type, or call Python functions that the arguments are not made for.
SKIPPED = {"set_cpu_devices", "set_failure_callback", "set_limit", "record_history", "mem_get_info"}
RESULTS = (zm._Memory, zm.MemoryPool, zm.PoolScope, zm.IPCMemoryHandle, zeusm.UsmArray, zeusm.Event)

queue = dpctl.SyclQueue("level_zero:gpu")
another = dpctl.SyclQueue(dpctl.SyclContext(queue.sycl_device), queue.sycl_device)
# Intel's driver has GPUs only.
(other, *_) = [*dpctl.get_devices("level_zero", "cpu"), another.sycl_device]
other = dpctl.SyclQueue(other)
target = zm.MemoryUSMShared(4096)
objects = []
# Views are arguments only: CPython's iterators do not check whether a view was released.
views = []


class Interface:
    """An object with an interface, which may be wrong."""

    def __init__(self, interface):
        self.interface = interface

    @property
    def __sycl_usm_array_interface__(self):
        if isinstance(self.interface, Exception):
            raise self.interface
        return self.interface


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return operator.index(self.value)


def interface():
    return {
        "data": (target._pointer + chance.choice([0, 1]), chance.choice([True, False, None])),
        "shape": (chance.choice([-1, 0, 4, 4096, 2**62]),),
        "strides": chance.choice([None, (1,), (-1,), (0,), ()]),
        "offset": chance.choice([0, 3, -1, 2**62]),
        "typestr": chance.choice(["|u1", "<f8", "|V3", "|V0", "|O", ">i4", ""]),
        "version": chance.choice([1, 2]),
        "syclobj": chance.choice(
            [queue, another.sycl_context, "level_zero:gpu", None, queue._get_capsule()]
        ),
    }


def number():
    # Sizes of gigabytes would only take time.
    bits = chance.choice([0, 3, 8, 12, 16, 62, 63, 64, 70])
    return chance.choice([-1, 1]) * (2**bits - chance.choice([0, 1]))


def host_array():
    dtype = chance.choice(
        [
            "u1",
            "f4",
            "f8",
            "c16",
            "?",
            ">i4",
            "f2",
            "M8[s]",
            "O",
            "S3",
            [],
            [("a", "i4"), ("b", "f8")],
        ]
    )
    array = np.zeros(chance.choice([(), (0,), (64,), (4, 4), (2, 0, 3)]), dtype)
    return chance.choice([array, array.T, array[..., ::-1] if array.ndim else array])


def plain():
    constants = (
        None,
        True,
        False,
        1.5,
        float("nan"),
        "",
        "x",
        "f4",
        "shared",
        "level_zero:gpu",
        b"",
        b"abc",
        "F",
    )
    indices = (
        slice(None),
        slice(1, 5, 2),
        slice(None, None, -1),
        ...,
        (slice(1, 3), 0),
        (None, ...),
        (-1,),
        (2, 3),
        (),
        [],
        {},
    )
    types_ = (int, object, np.float64, np.dtype("i8"), zm.MemoryUSMHost, zeusm, print)
    return chance.choice([*constants, *indices, *types_])


def fresh():
    """A new object with memory."""
    kind, size = chance.choice(CLASSES), chance.choice([0, 1, 64, 4096, 100_000])
    makers = (
        lambda: kind(size),
        lambda: kind(64).copy_from_host_async(bytes(64)),
        lambda: zm.MemoryPool(chance.choice(["shared", "device", "host"])),
        lambda: zeusm.empty(
            chance.choice([0, 3, (2, 3), (4, 0)]),
            dtype=chance.choice(["f4", "i8", "?", "c16", [("a", "i2")]]),
        ),
        lambda: dpctl.memory.MemoryUSMShared(64, queue=chance.choice([queue, another, other])),
        lambda: bytearray(chance.choice([0, 64])),
        lambda: memoryview(bytearray(64))[::2],
    )
    return chance.choice(makers)()


def argument():
    if objects and chance.random() < 0.4:
        return chance.choice(objects + views)
    makers = (
        *(number, number, plain, plain, fresh, host_array),
        lambda: Index(number()),
        lambda: Index("no number"),
        lambda: Interface(
            chance.choice(
                [None, {}, ValueError("no interface"), interface(), interface(), interface()]
            )
        ),
        lambda: chance.choice([queue, another, other, queue.sycl_context, queue.sycl_device]),
        lambda: chance.choice([queue, queue.sycl_context])._get_capsule(),
    )
    return chance.choice(makers)()


def method():
    """A function of a module, or a method of an object."""
    owner = chance.choice(objects) if objects and chance.random() < 0.7 else chance.choice(MODULES)
    is_module = isinstance(owner, types.ModuleType)
    names = [
        name
        for name in dir(owner)
        if name not in SKIPPED and not (is_module and name.startswith("_"))
    ]
    # Names of every object, like `__class__` and `__init__`, say nothing about zeusm.
    return getattr(owner, chance.choice([name for name in names if name not in dir(object)]))


def call(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function(*(argument() for _ in range(chance.choice([0, 1, 1, 2, 3]))))
    needed = [
        one for one in parameters if one.default is one.empty and one.kind != one.KEYWORD_ONLY
    ]
    options = {
        one.name: argument() for one in parameters if one not in needed and chance.random() < 0.4
    }
    return function(*(argument() for _ in needed), **options)


def step():
    choice = chance.random()
    if choice < 0.1:
        return chance.choice(CONVERSIONS)(argument())
    if choice < 0.15 and objects:
        operator.setitem(chance.choice(objects), argument(), argument())
    if choice < 0.2 and objects:
        return chance.choice(objects)[argument()]
    found = method()
    return call(found) if callable(found) else found


marks = [kind(4096) for kind in CLASSES for _ in range(3)]
patterns = [chance.randbytes(4096) for _ in marks]
for mark, pattern in zip(marks, patterns, strict=True):
    mark.copy_from_host(pattern)

for turn in range(calls):
    try:
        result = step()
    except SystemError:
        raise
    except Exception:
        pass
    else:
        if isinstance(result, RESULTS):
            objects.append(result)
        elif isinstance(result, memoryview):
            views.append(result)
    for held in (objects, views):
        if len(held) > 30 or (held and chance.random() < 0.02):
            held.pop(chance.randrange(len(held)))
    if turn % 500 == 499:
        gc.collect()
        assert [mark.tobytes() for mark in marks] == patterns, (seed, turn)
