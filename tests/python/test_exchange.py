"""Exchange of memory with dpctl in both directions without a copy."""

import ctypes
from random import Random
from types import SimpleNamespace

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm.memory

try:
    from dpnp.tensor import usm_ndarray
except ImportError:  # dpctl provided the array before dpnp 0.19.
    from dpctl.tensor import usm_ndarray

N = 4096
PATTERN = bytes(i % 251 for i in range(N))
DPCTL_CLASSES = [getattr(dpctl.memory, f"MemoryUSM{kind}") for kind in ("Device", "Shared", "Host")]


def same(one, other):
    """Whether both objects describe the same memory alike."""
    assert one._pointer == other._pointer
    assert one.nbytes == other.nbytes
    assert one.get_usm_type() == other.get_usm_type()
    assert one.sycl_context == other.sycl_context
    return True


def test_dpctl_takes_zeusm_memory(memory_class, dpctl_class, usm_type):
    x = memory_class(N)
    y = dpctl.memory.as_usm_memory(x)
    assert type(y) is dpctl_class
    assert same(x, y)
    assert y.get_usm_type() == usm_type
    assert y.reference_obj is x


def test_zeusm_takes_dpctl_memory(memory_class, dpctl_class, usm_type):
    x = dpctl_class(N)
    y = zeusm.memory.as_usm_memory(x)
    assert type(y) is memory_class
    assert same(x, y)
    assert y.get_usm_type() == usm_type
    assert y.reference_obj is x


def test_dpctl_takes_the_bytes_of_an_array(usm_type):
    """From the lowest to the highest, whatever the strides; of types that it has no name for, by the memory object."""
    strided = zeusm.asarray(np.arange(12, dtype="f4"), usm_type=usm_type)[2::3]
    narrow = zeusm.empty(3, "bfloat16", usm_type=usm_type)
    for given, array, nbytes in (strided, strided, 40), (narrow.base, narrow, 6):
        theirs = dpctl.memory.as_usm_memory(given)
        assert (theirs._pointer, theirs.nbytes) == (array._pointer, nbytes)


def test_there_and_back(memory_class):
    x = memory_class(N)
    z = zeusm.memory.as_usm_memory(dpctl.memory.as_usm_memory(x))
    assert type(z) is memory_class
    assert same(x, z)


def test_dpctl_constructor_takes_zeusm_memory(memory_class, dpctl_class):
    x = memory_class(N)
    assert same(dpctl_class(x), x)


def test_each_side_sees_what_the_other_writes(memory_class):
    x = memory_class(N)
    y = dpctl.memory.as_usm_memory(x)
    y.copy_from_host(PATTERN)
    assert bytes(x) == PATTERN
    x.memset(7)
    assert bytes(y) == b"\7" * N


def test_views_of_both_sides_are_one_memory(host_class):
    x = host_class(N)
    y = dpctl.memory.as_usm_memory(x)
    mine, theirs = np.asarray(memoryview(x)), np.asarray(memoryview(y))
    assert mine.__array_interface__["data"] == theirs.__array_interface__["data"]
    assert mine.__array_interface__["data"][0] == x._pointer
    mine[:] = np.frombuffer(PATTERN, "u1")
    assert theirs.tobytes() == PATTERN
    theirs[::2] = 0
    assert mine[::2].sum() == 0


def test_copies_between_the_two(memory_class, dpctl_class):
    x, y = memory_class(N), dpctl_class(N)
    x.copy_from_host(PATTERN)
    y.copy_from_device(x)
    assert bytes(y) == PATTERN
    y.memset(3)
    x.copy_from_device(y)
    assert bytes(x) == b"\3" * N


def test_copies_between_kinds(memory_class):
    x = memory_class(N)
    x.copy_from_host(PATTERN)
    for other in ("MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"):
        y = getattr(zeusm.memory, other)(N)
        y.copy_from_device(x)
        assert bytes(y) == PATTERN


def test_memory_is_in_the_default_context(memory_class):
    queue = dpctl.SyclQueue()
    x = memory_class(N)
    assert x.sycl_context == queue.sycl_context
    assert x.sycl_device == queue.sycl_device
    assert x.sycl_queue.sycl_context == queue.sycl_context


@pytest.mark.parametrize("what", ["queue", "context", "device", "queue capsule", "context capsule"])
def test_memory_goes_where_it_is_asked_to(memory_class, usm_type, what):
    device = dpctl.SyclDevice("level_zero:gpu")
    context = dpctl.SyclContext([device])  # A list creates a new context.
    queue = dpctl.SyclQueue(context, device)
    assert context != dpctl.SyclQueue(device).sycl_context
    place = {
        "queue": queue,
        "context": context,
        "device": device,
        "queue capsule": queue._get_capsule(),
        "context capsule": context._get_capsule(),
    }[what]
    x = memory_class(N, queue=place)
    wanted = dpctl.SyclQueue(device).sycl_context if what == "device" else context
    assert x.sycl_context == wanted
    assert x.sycl_device == device
    y = dpctl.memory.as_usm_memory(x)
    assert y.sycl_context == wanted
    assert y.get_usm_type() == usm_type


def test_memory_keeps_its_context_alive(memory_class):
    device = dpctl.SyclDevice("level_zero:gpu")
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    x = memory_class(N, queue=queue)
    del queue
    y = dpctl.memory.as_usm_memory(x)
    y.copy_from_host(PATTERN)
    del y
    assert bytes(x) == PATTERN


@pytest.mark.parametrize("alignment", [0, 1, 2, 64, 4096, 2**16])
def test_alignment_is_honoured(memory_class, alignment):
    for _ in range(8):
        x = memory_class(100, alignment=alignment)
        assert x._pointer % max(alignment, 1) == 0
        assert x.nbytes == 100


def test_properties(memory_class, usm_type):
    x = memory_class(N)
    assert (x.nbytes, x.size, len(x)) == (N, N, N)
    assert x.get_usm_type() == usm_type
    assert x.get_usm_type_enum() == {"device": 1, "shared": 2, "host": 3}[usm_type]
    assert x.reference_obj is None
    assert usm_type in repr(x)
    assert str(N) in repr(x)
    assert hex(x._pointer) in repr(x)


def test_read_only_is_kept(memory_class):
    """dpctl.memory sets True for writable memory; all other exporters, including arrays, set it for read-only memory."""
    theirs = getattr(dpctl.memory, memory_class.__name__)(N)
    array = usm_ndarray((N,), dtype="u1", buffer=theirs)
    zeusm.memory.as_usm_memory(theirs).memset(1)
    zeusm.memory.as_usm_memory(array).memset(2)
    array.flags.writable = False
    with pytest.raises(ValueError, match="read-only"):
        zeusm.memory.as_usm_memory(array).memset(3)
    with pytest.raises(ValueError, match="read-only"):
        zeusm.memory.as_usm_memory(Duck(memory_class(N), data=(theirs._pointer, True))).memset(3)
    assert bytes(theirs) == b"\2" * N


@pytest.mark.parametrize("number", [np.int64(N), np.uint32(N), True], ids=repr)
def test_any_integer_is_a_size(memory_class, number):
    assert memory_class(number).nbytes == int(number)


class TestInterface:
    """The exported dictionary."""

    def test_fields(self, memory_class):
        x = memory_class(N)
        interface = x.__sycl_usm_array_interface__
        assert interface["data"] == (x._pointer, False)  # False: not read-only
        assert interface["shape"] == (N,)
        assert interface["typestr"] == "|u1"
        assert interface["strides"] in (None, (1,))
        assert interface.get("offset", 0) == 0
        assert interface["version"] == 1

    def test_each_read_makes_a_new_capsule(self, memory_class):
        x = memory_class(N)
        capsules = [x.__sycl_usm_array_interface__["syclobj"] for _ in range(3)]
        name = ctypes.pythonapi.PyCapsule_GetName
        name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p
        assert [name(capsule) for capsule in capsules] == [b"SyclContextRef"] * 3
        for capsule in capsules:  # A capsule can be used once.
            assert dpctl.SyclContext(capsule) == x.sycl_context
        assert [name(capsule) for capsule in capsules] == [b"used_SyclContextRef"] * 3

    def test_capsule_outlives_the_object(self, memory_class):
        x = memory_class(N)
        context = x.sycl_context
        capsule = x.__sycl_usm_array_interface__["syclobj"]
        del x
        assert dpctl.SyclContext(capsule) == context


class Duck:
    """An object with only the interface, in which some fields are replaced."""

    def __init__(self, memory, **fields):
        self.memory, self.fields = memory, fields

    @property
    def __sycl_usm_array_interface__(self):
        return self.memory.__sycl_usm_array_interface__ | self.fields


def test_any_object_with_the_interface_is_taken_and_kept(memory_class):
    x = Duck(dpctl.memory.MemoryUSMShared(N))
    y = zeusm.memory.as_usm_memory(x)
    assert y._pointer == x.memory._pointer
    assert y.reference_obj is x


@pytest.mark.parametrize(
    ("fields", "first", "nbytes"),
    [
        ({"shape": (10,)}, 0, 10),
        ({"shape": (10,), "offset": 5}, 5, 10),
        ({"shape": (5, 2), "typestr": "<f8"}, 0, 80),
        ({"shape": (4,), "typestr": "<f4", "offset": 3}, 12, 16),
        ({"shape": (3,), "strides": (4,)}, 0, 9),
        ({"shape": (2, 2), "strides": (10, -2), "offset": 9}, 7, 13),
        ({"shape": (), "typestr": "<c16"}, 0, 16),
        ({"shape": (N,), "strides": (1,)}, 0, N),
    ],
)
def test_views_cover_what_they_describe(memory_class, fields, first, nbytes):
    x = memory_class(N)
    x.copy_from_host(PATTERN)
    y = zeusm.memory.as_usm_memory(Duck(x, **fields))
    assert (y._pointer - x._pointer, y.nbytes) == (first, nbytes)
    assert bytes(y) == PATTERN[first : first + nbytes]


@pytest.mark.parametrize(
    "what", ["queue", "context", "queue capsule", "context capsule", "string", "duck"]
)
def test_each_kind_of_syclobj_is_read(memory_class, what):
    class HasCapsule:
        def _get_capsule(self):
            return queue._get_capsule()

    x = memory_class(N)
    queue = x.sycl_queue
    syclobj = {
        "queue": queue,
        "context": queue.sycl_context,
        "queue capsule": queue._get_capsule(),
        "context capsule": queue.sycl_context._get_capsule(),
        "string": queue.sycl_device.filter_string,
        "duck": HasCapsule(),
    }[what]
    y = zeusm.memory.as_usm_memory(Duck(x, syclobj=syclobj))
    assert same(x, y)


def test_wrong_class_for_the_kind(usm_type, memory_class):
    x = memory_class(N)
    for name in ("MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"):
        other = getattr(zeusm.memory, name)
        if other is memory_class:
            assert other(Duck(x))._pointer == x._pointer
        else:
            with pytest.raises(ValueError, match=usm_type):
                other(Duck(x))


class TestFurtherFields:
    """Fields of the dictionary in the specifications of numba-dpex and Numba."""

    class Own(np.ndarray):
        """An array over USM memory whose interface has no `data`, which its buffer provides."""

        @property
        def __sycl_usm_array_interface__(self):
            interface = self.memory.__sycl_usm_array_interface__ | {
                "shape": self.shape,
                "typestr": self.dtype.str,
            }
            del interface["data"]
            return interface

    def test_data_may_be_the_objects_own_buffer(self, host_class):
        memory = host_class(N)
        own = np.frombuffer(memory, "f4").view(self.Own)
        own.memory = memory
        for part, offset in (own, 0), (own[16:32], 64):
            part.memory = memory
            taken = zeusm.memory.as_usm_memory(part)
            assert (taken._pointer, taken.nbytes) == (memory._pointer + offset, part.nbytes)
            taken.memset(1)
        array = zeusm.as_usm_array(own)
        assert (array._pointer, array.dtype, array.readonly) == (memory._pointer, "f4", False)
        own.flags.writeable = False
        assert zeusm.as_usm_array(own).readonly
        with pytest.raises(ValueError, match="read-only"):
            zeusm.memory.as_usm_memory(own).memset(2)

    def test_a_buffer_elsewhere_is_refused(self, host_class):
        own = np.zeros(N, "u1").view(self.Own)
        own.memory = host_class(N)
        with pytest.raises(ValueError, match="not a USM allocation"):
            zeusm.memory.as_usm_memory(own)

    def test_neither_data_nor_a_buffer(self, memory_class):
        neither = SimpleNamespace(
            __sycl_usm_array_interface__=memory_class(N).__sycl_usm_array_interface__
        )
        del neither.__sycl_usm_array_interface__["data"]
        with pytest.raises(ValueError, match="no 'data', and no buffer"):
            zeusm.memory.as_usm_memory(neither)

    def test_a_mask(self, memory_class):
        x = memory_class(N)
        assert same(x, zeusm.memory.as_usm_memory(Duck(x, mask=None)))
        for take in (
            zeusm.memory.as_usm_memory,
            zeusm.as_usm_array,
            memory_class(N).copy_from_device,
        ):
            with pytest.raises(NotImplementedError, match="mask"):
                take(Duck(x, mask=np.ones(N, "?")))
        # dpctl ignores the mask.
        assert same(x, dpctl.memory.as_usm_memory(Duck(x, mask=np.ones(N, "?"))))

    @pytest.mark.parametrize("key", ["descr", "typedescr"])
    def test_a_record(self, memory_class, key):
        x = memory_class(N)
        record = [("x", "<f4"), ("", "|V4"), ("y", "<f8", (2,))]
        y = zeusm.memory.as_usm_memory(Duck(x, typestr="|V24", shape=(3,), **{key: record}))
        assert y.nbytes == 72
        with pytest.raises(ValueError, match="descr"):
            zeusm.memory.as_usm_memory(Duck(x, typestr="|V25", shape=(3,), **{key: record}))

    def test_a_plain_type_may_be_described_too(self, memory_class):
        x = memory_class(N)
        y = zeusm.memory.as_usm_memory(Duck(x, typestr="<f4", shape=(3,), descr=[("", "<f4")]))
        assert y.nbytes == 12

    def test_the_capsule_of_a_refused_dictionary_stays_its_makers(self, memory_class):
        x = memory_class(N)
        elsewhere = np.zeros(N, "u1")
        name = ctypes.pythonapi.PyCapsule_GetName
        name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p

        def after_refusal(package):
            capsule = x.sycl_queue._get_capsule()
            duck = Duck(x, syclobj=capsule, data=(elsewhere.ctypes.data, True))
            with pytest.raises(ValueError, match="syclobj"):
                package.as_usm_memory(duck)
            return capsule

        assert name(after_refusal(dpctl.memory)) == b"used_SyclQueueRef"
        capsule = after_refusal(zeusm.memory)
        assert name(capsule) == b"SyclQueueRef"
        assert same(x, zeusm.memory.as_usm_memory(Duck(x, syclobj=capsule)))
        assert name(capsule) == b"used_SyclQueueRef"


def test_dpctls_allocations_do_not_overlap():
    """SYCL's pools cut aligned memory out of slabs, by the page size that the driver reports."""
    random, alive = Random(1), []
    for _ in range(2000):
        class_ = random.choice(DPCTL_CLASSES)
        size = random.choice([64, 5000, 16384, 65536, 70001, 131072, 300000])
        new = class_(size, alignment=random.choice([0, 256, 1024, 4096]))
        of_driver = zeusm.pointer_attributes(new._pointer)
        assert new._pointer + size <= of_driver.base + of_driver.size
        for old in alive:
            assert new._pointer + size <= old._pointer or old._pointer + old.nbytes <= new._pointer
        alive.append(new)
        if len(alive) > 60:
            alive.pop(random.randrange(60))
