"""Invalid dictionaries: the error names field and value, and the memory is not accessed."""

import ctypes

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.once

N = 4096
PATTERN = bytes(i % 251 for i in range(N))


class Duck:
    """An object with only the interface, of any value."""

    def __init__(self, interface):
        self.interface = interface

    @property
    def __sycl_usm_array_interface__(self):
        return self.interface


class Described:
    """Memory with some fields of its interface replaced or removed."""

    def __init__(self, memory, without=(), **fields):
        self.memory, self.without, self.fields = memory, without, fields

    @property
    def __sycl_usm_array_interface__(self):
        interface = self.memory.__sycl_usm_array_interface__ | self.fields
        return {name: interface[name] for name in interface if name not in self.without}


@pytest.mark.parametrize("field", ["shape", "typestr", "version", "syclobj", "data"])
def test_a_missing_field(memory_class, field):
    x = memory_class(N)
    with pytest.raises(ValueError, match=field):
        zeusm.memory.as_usm_memory(Described(x, without=[field]))


WRONG = [
    ("data", None),
    ("data", 5),
    ("data", ()),
    ("data", (1,)),
    ("data", (1, False, 3)),
    ("data", ("x", False)),
    ("data", (1.5, False)),
    ("data", (-1, False)),
    ("data", (2**64, False)),
    ("data", (2**70, False)),
    ("shape", None),
    ("shape", 5),
    ("shape", "ab"),
    ("shape", (-1,)),
    ("shape", (1.5,)),
    ("shape", (None,)),
    ("shape", (N + 1,)),
    ("shape", (2**40,)),
    ("shape", (2**63,)),
    ("shape", (2**64,)),
    ("shape", (2**32, 2**32)),
    ("shape", (2**62, 4)),
    ("shape", (2**63 - 1, 2**63 - 1)),
    ("shape", (3, 2**62)),
    ("typestr", None),
    ("typestr", 5),
    ("typestr", ""),
    ("typestr", "invalid"),
    ("typestr", "O"),
    ("typestr", "|O8"),
    ("typestr", "<f"),
    ("typestr", "<f99999999999999999999"),
    ("typestr", "<f8"),  # Eight times the bytes of the allocation.
    ("strides", ...),
    ("strides", 1),
    ("strides", (1, 1)),
    ("strides", ()),
    ("strides", ("a",)),
    ("strides", (1.5,)),
    ("strides", (2,)),
    ("strides", (-1,)),
    ("strides", (2**62,)),
    ("strides", (2**64,)),
    ("strides", (-(2**63),)),
    ("offset", "x"),
    ("offset", 1.5),
    ("offset", -1),
    ("offset", 1),
    ("offset", N - 1),
    ("offset", 2**63 - 1),
    ("offset", 2**64),
    ("offset", -(2**63)),
    ("version", None),
    ("version", 0),
    ("version", 2),
    ("version", -1),
    ("version", "1"),
    ("version", 2**64),
    ("syclobj", None),
    ("syclobj", 5),
    ("syclobj", object()),
    ("syclobj", "no:such:device"),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=repr)
def test_a_wrong_field(memory_class, field, value):
    x = memory_class(N)
    x.copy_from_host(PATTERN)
    y = memory_class(N)
    y.memset(1)
    duck = Described(x, **{field: value})
    with pytest.raises((ValueError, TypeError), match=field):
        zeusm.memory.as_usm_memory(duck)
    with pytest.raises((ValueError, TypeError), match=field):
        memory_class(duck)
    with pytest.raises((ValueError, TypeError), match=field):
        y.copy_from_device(duck)
    assert bytes(x) == PATTERN
    assert bytes(y) == b"\1" * N


def test_a_neighbour_is_not_reached(memory_class):
    """The offset leads from one allocation into another one."""
    x, y = sorted((memory_class(N) for _ in range(2)), key=lambda memory: memory._pointer)
    distance = y._pointer - x._pointer
    for memory, offset in ((x, distance), (y, -distance)):
        with pytest.raises(ValueError, match="offset"):
            zeusm.memory.as_usm_memory(Described(memory, offset=offset, shape=(1,)))


@pytest.mark.parametrize("value", [None, [], 5, "x", ()])
def test_an_interface_that_is_no_dictionary(value):
    with pytest.raises((ValueError, TypeError), match="__sycl_usm_array_interface__"):
        zeusm.memory.as_usm_memory(Duck(value))


@pytest.mark.parametrize("value", [None, 5, b"abc", object()])
def test_an_object_without_the_interface(memory_class, value):
    with pytest.raises((ValueError, TypeError), match="__sycl_usm_array_interface__"):
        zeusm.memory.as_usm_memory(value)
    with pytest.raises((ValueError, TypeError), match="__sycl_usm_array_interface__"):
        memory_class(N).copy_from_device(value)


def test_an_interface_that_raises():
    class Raises:
        @property
        def __sycl_usm_array_interface__(self):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        zeusm.memory.as_usm_memory(Raises())


def test_a_capsule_that_was_used(memory_class):
    interface = memory_class(N).__sycl_usm_array_interface__
    dpctl.SyclContext(interface["syclobj"])
    with pytest.raises(ValueError, match=r"syclobj.*used_SyclContextRef"):
        zeusm.memory.as_usm_memory(Duck(interface))


@pytest.mark.parametrize("what", ["host pointer", "stack pointer", "freed pointer", "made up"])
def test_a_pointer_that_level_zero_does_not_know(memory_class, what):
    x = memory_class(N)
    host = np.zeros(N, "u1")
    number = ctypes.c_int(0)
    freed = memory_class(64)
    pointer = {
        "host pointer": host.ctypes.data,
        "stack pointer": ctypes.addressof(number),
        "freed pointer": freed._pointer,
        "made up": 0xDEAD_BEEF_000,
    }[what]
    del freed
    with pytest.raises(ValueError, match=f"data.*{pointer:#x}"):
        zeusm.memory.as_usm_memory(Described(x, data=(pointer, False), shape=(1,)))


def test_a_context_that_the_pointer_is_not_of(fresh, usm_type):
    """SYCL's contexts of all devices of a driver share one of Level Zero, so there are two devices."""
    program = f"""
import zeusm
import zeusm.memory as zm
import dpctl

x = zm.MemoryUSM{usm_type.title()}({N})
other = dpctl.SyclContext([dpctl.SyclDevice("level_zero:gpu")])
assert other != x.sycl_context


class Described:
    __sycl_usm_array_interface__ = dict(x.__sycl_usm_array_interface__, syclobj=other)


try:
    zm.as_usm_memory(Described())
except ValueError as error:
    assert "data" in str(error) or "syclobj" in str(error), error
else:
    raise AssertionError("memory of another context was accepted")
try:
    zeusm.pointer_attributes(x._pointer, other)
except ValueError as error:
    assert "not a USM allocation" in str(error), error
else:
    raise AssertionError("the pointer was found in another context")
"""
    fresh(program, env={"ZEUSM_CPU_DEVICES": "2"})


@pytest.mark.parametrize("strides", [None, (1,), (9,), (1 << 61,)])
@pytest.mark.parametrize("claim", [{"shape": (N * 2,)}, {"offset": N}, {"offset": 1 << 62}])
def test_a_message_tells_the_strides_as_python_does(strides, claim):
    x = zeusm.memory.MemoryUSMShared(N)
    fields = {"shape": (N,), "strides": strides} | claim
    for take in zeusm.memory.as_usm_memory, zeusm.as_usm_array:
        with pytest.raises(ValueError, match="strides|offset|shape") as caught:
            take(Described(x, **fields))
        assert "Some(" not in str(caught.value)


ITEM_TYPES = st.sampled_from(["|u1", "<f4", "<f8", "<c16", "|b1", "<U4", ">i2"])
INTEGERS = st.integers(-(2**65), 2**65) | st.integers(-3, 5000)
ANYTHING = st.none() | INTEGERS | st.floats() | st.text(max_size=4) | st.binary(max_size=4)
TUPLES = st.lists(INTEGERS, max_size=4).map(tuple)


@settings(max_examples=600, deadline=None)
@given(
    fields=st.fixed_dictionaries(
        {},
        optional={
            "shape": TUPLES | ANYTHING,
            "strides": TUPLES | ANYTHING,
            "offset": ANYTHING,
            "typestr": st.sampled_from(["|u1", "<f4", "<f8", "<c16", "|b1", "<U4", ">i2"])
            | ANYTHING,
            "version": st.just(1) | ANYTHING,
            "data": st.tuples(INTEGERS, st.booleans()) | ANYTHING,
        },
    )
)
def test_no_dictionary_reaches_outside_the_allocation(fields):
    x = zeusm.memory.MemoryUSMShared(N)
    try:
        y = zeusm.memory.as_usm_memory(Described(x, **fields))
    except (ValueError, TypeError):
        return
    if y.nbytes == 0:
        return
    assert x._pointer <= y._pointer
    assert y._pointer + y.nbytes <= x._pointer + N
    assert len(bytes(y)) == y.nbytes


@pytest.mark.parametrize("field", ["shape", "strides"])
def test_a_field_with_more_integers_than_dimensions_are_possible(memory_class, field):
    """Such a sequence may have no end, or need more memory than there is."""
    described = Described(memory_class(N), **{field: range(1 << 40)})
    with pytest.raises(ValueError, match=f"'{field}' has more than 64 integers"):
        zeusm.memory.as_usm_memory(described)


def test_a_record_field_with_more_extents_than_are_possible(memory_class):
    descr = [("x", "|u1", range(1 << 40))]
    described = Described(memory_class(N), typestr=f"|V{N}", shape=(1,), descr=descr)
    with pytest.raises(ValueError, match="'descr' has the field .*range"):
        zeusm.asarray(described)


def test_a_record_that_contains_another_many_times(memory_class):
    """A few lists are enough for 2^30 fields."""
    descr = [("x", "|u1")]
    for _ in range(30):
        descr = [("a", descr), ("b", descr)]
    described = Described(memory_class(N), typestr=f"|V{1 << 30}", shape=(1,), descr=descr)
    with pytest.raises(ValueError, match="'descr' has more than 65536 fields"):
        zeusm.asarray(described)


def test_an_interface_is_read_once(memory_class):
    """The next dictionary may describe other memory, and dpnp's waits for the queue."""
    memory, target = memory_class(64), memory_class(64)
    array = target.view("u1")

    class Counted:
        reads = 0

        @property
        def __sycl_usm_array_interface__(self):
            Counted.reads += 1
            return memory.__sycl_usm_array_interface__

    calls = [
        zeusm.asarray,
        zeusm.as_usm_array,
        zeusm.memory.as_usm_memory,
        memory_class,
        target.copy_from_device,
        target.copy_to_device,
        lambda x: target.copy_from_device_async(x).wait(),
        lambda x: target.__setitem__(slice(None), x),
        lambda x: array.__setitem__(slice(None), x),
        array.copy_to_device,
    ]
    for number, call in enumerate(calls, 1):
        call(Counted())
        assert Counted.reads == number


def test_memory_that_owns_an_import_cannot_be_closed(memory_class):
    memory = memory_class(N, pool=False)
    interface = {
        "data": (memory._pointer, False),
        "shape": (N,),
        "typestr": "|u1",
        "version": 1,
        "syclobj": memory.sycl_queue,
    }
    array = zeusm.from_sycl_usm_array_interface(interface, owner=memory)
    with pytest.raises(BufferError, match="it owns an import"):
        memory.close()
    assert array.base.reference_obj is memory


def test_memory_whose_own_buffer_is_imported_cannot_be_closed():
    class Described(zeusm.memory.MemoryUSMShared):
        @property
        def __sycl_usm_array_interface__(self):
            return {"shape": (N,), "typestr": "|u1", "version": 1, "syclobj": self.sycl_queue}

    memory = Described(N, pool=False)
    shared = zeusm.memory.as_usm_memory(memory)
    assert shared.reference_obj is memory
    with pytest.raises(BufferError, match="it owns an import"):
        memory.close()
    closed = Described(N)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        zeusm.memory.as_usm_memory(closed)
