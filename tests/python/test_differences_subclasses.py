"""Differences between zeusm and dpctl in subclasses, copies and odd arguments: rows of docs/dpctl.md, on both packages."""

import collections
import sys
import weakref

import dpctl
import dpctl.memory
import pytest
import zeusm.memory

N = 4096
KINDS = ("Device", "Shared", "Host")


def test_slots_for_weak_references(memory_class, dpctl_class):
    """dpctl's memory has no place for weak references, zeusm's has one already."""
    theirs = type("WithSlot", (dpctl_class,), {"__slots__": ("__weakref__",)})(N)
    assert weakref.ref(theirs)() is theirs
    with pytest.raises(TypeError, match="__weakref__ slot"):
        type("WithSlot", (memory_class,), {"__slots__": ("__weakref__",)})
    ours = type("WithoutSlot", (memory_class,), {"__slots__": ()})(N)
    assert weakref.ref(ours)() is ours


def other_kind(memory_class):
    """The class of another kind."""
    module = sys.modules[memory_class.__module__]
    return next(
        getattr(module, f"MemoryUSM{kind}") for kind in KINDS if kind not in memory_class.__name__
    )


def test_the_place_of_a_copy(fresh, memory_class):
    kind, other = memory_class.__name__, other_kind(memory_class).__name__
    program = f"""
import zeusm.memory as zm
import dpctl
import dpctl.memory as dm

queue = dpctl.SyclQueue("level_zero:gpu:1")
theirs = dm.{other}(dm.{kind}({N}, queue=queue), copy=True)
assert theirs.sycl_device != queue.sycl_device
for copy_class in zm.{kind}, zm.{other}:
    ours = copy_class(zm.{kind}({N}, queue=queue), copy=True)
    assert ours.sycl_queue == queue
"""
    fresh(program, env={"ZEUSM_CPU_DEVICES": "2"})


class Exporter:
    """An object that exports memory without being memory."""

    def __init__(self, interface):
        self.__sycl_usm_array_interface__ = interface


class Failing:
    """An integer whose conversion fails."""

    def __index__(self):
        raise ArithmeticError("the reason")


def test_a_failing_conversion(memory_class, dpctl_class):
    with pytest.raises(ArithmeticError, match="the reason"):
        dpctl_class(N, alignment=Failing())
    with pytest.raises(ArithmeticError, match="the reason"):
        memory_class(N, alignment=Failing())


def test_other_classes_of_dictionaries_and_shapes(memory_class, dpctl_class):
    memory = dpctl_class(N)
    ordered = Exporter(collections.OrderedDict(memory.__sycl_usm_array_interface__))
    with pytest.raises(TypeError, match="dict"):
        dpctl_class(ordered)
    assert memory_class(ordered)._pointer == memory._pointer
    iterated = memory.__sycl_usm_array_interface__
    iterated["shape"] = iter((N,))
    with pytest.raises(ValueError, match="Shape"):
        dpctl_class(Exporter(iterated))
    iterated["shape"] = iter((N,))
    assert memory_class(Exporter(iterated)).nbytes == N


def test_a_copy_from_what_has_no_dictionary(memory_class, dpctl_class):
    exporter = Exporter("no dictionary")
    with pytest.raises(TypeError):
        dpctl_class(N).copy_from_device(exporter)
    with pytest.raises(ValueError, match="dict"):
        memory_class(N).copy_from_device(exporter)
    for importing in dpctl_class, memory_class:
        with pytest.raises(ValueError, match="dict|interface"):
            importing(exporter)


def test_a_subclass_with_an_interface_of_its_own(memory_class, dpctl_class):
    def of_four(base):
        class Four(base):
            @property
            def __sycl_usm_array_interface__(self):
                return super().__sycl_usm_array_interface__ | {"shape": (4,)}

        return Four(N)

    assert dpctl.memory.as_usm_memory(of_four(dpctl_class)).nbytes == N
    assert zeusm.memory.as_usm_memory(of_four(memory_class)).nbytes == 4
