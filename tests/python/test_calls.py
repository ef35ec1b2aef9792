"""Calls of the classes, which take a shorter way than calls of their subclasses."""

import ctypes
from functools import partial
from pathlib import Path

import dpctl
import numpy as np
import pytest
import zeusm.memory as zm
from zeusm import _zeusm

pytestmark = pytest.mark.once

N = 4096


def vectorcall(callee):
    """The address of what the interpreter calls for the callee without a tuple of the arguments, if anything."""
    find = ctypes.pythonapi.PyVectorcall_Function
    find.argtypes, find.restype = [ctypes.py_object], ctypes.c_void_p
    return find(callee)


def test_only_the_classes_themselves_have_the_shorter_way(memory_class):
    """The stable ABI has no slot for it. A module that uses it is named after no version."""
    assert bool(vectorcall(memory_class)) == (".cp" in Path(_zeusm.__file__).name)
    assert not vectorcall(type("Own", (memory_class,), {}))


def test_each_way_makes_the_same(memory_class):
    queue = dpctl.SyclQueue("level_zero:gpu")
    arguments, keywords = (N,), {"alignment": 512, "queue": queue}
    made = [
        memory_class(N, alignment=512, queue=queue),
        memory_class(other=N, queue=queue, alignment=512),
        memory_class(*arguments, **keywords),
        partial(memory_class, **keywords)(N),
        type.__call__(memory_class, *arguments, **keywords),
        memory_class.__new__(memory_class, *arguments, **keywords),
    ]
    for x in made:
        assert type(x) is memory_class
        assert (x.nbytes, x.sycl_queue, x._pointer % 512) == (N, queue, 0)
    assert len({x._pointer for x in made}) == len(made)


def test_a_queue_alone_by_any_spelling(memory_class):
    """By keyword, which is the shortest way; by a name that is equal to the keyword, but not the same string; None."""
    queue = dpctl.SyclQueue("level_zero:gpu", property="in_order")
    name = "".join(["qu", "eue"])
    for x in (
        memory_class(N, queue=queue),
        memory_class(N, **{name: queue}),
        memory_class(memory_class(N), queue=queue),
        memory_class(np.int64(N), queue=queue),
    ):
        assert type(x) is memory_class
        assert (x.nbytes, x.sycl_queue) == (N, queue)
    assert memory_class(N, queue=None).sycl_queue == memory_class(N).sycl_queue != queue
    with pytest.raises(TypeError):
        memory_class(N, queue)
    with pytest.raises(TypeError):
        memory_class(N, eueuq=queue)
    with pytest.raises(TypeError, match="queue"):
        memory_class(N, queue=1.5)
    with pytest.raises(ValueError, match="negative|-1"):
        memory_class(-1, queue=queue)


def test_each_way_refuses_the_same(memory_class):
    for call in memory_class, partial(type.__call__, memory_class):
        for arguments, keywords in [
            ((), {}),
            ((N, N), {}),
            ((N,), {"other": N}),
            ((N,), {"of": 1}),
        ]:
            with pytest.raises(TypeError):
                call(*arguments, **keywords)
        with pytest.raises(ValueError, match="alignment"):
            call(N, alignment=3)


def test_a_subclass_has_its_own_constructor(memory_class):
    class Named(memory_class):
        def __new__(cls, name, nbytes, **keywords):
            return super().__new__(cls, nbytes, **keywords)

        def __init__(self, name, nbytes, **keywords):
            self.name = name

    x = Named("grid", N, pool=False)
    assert (type(x), x.name, x.nbytes) == (Named, "grid", N)
    assert isinstance(zm.as_usm_memory(x), memory_class)
