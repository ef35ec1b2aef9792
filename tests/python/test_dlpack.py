"""DLPack, both ways: who has the memory, what the structure says, and who frees it when."""

import contextlib
import ctypes
import gc
import re
import threading
import weakref
from typing import ClassVar

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory
from conftest import CLASSES
from hypothesis import given, settings
from hypothesis import strategies as st
from test_array import DTYPES, indices, numbers

try:
    import dpctl.tensor as tensor
except ImportError:  # It moved to dpnp.
    import dpnp.tensor as tensor

CPU, CUDA, ONEAPI = 1, 2, 14
READ_ONLY, IS_COPIED = 1, 2
NUMPY_2 = int(np.__version__.split(".")[0]) >= 2


class Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unversioned(ctypes.Structure):
    name = b"dltensor"
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    name = b"dltensor_versioned"
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


api = ctypes.pythonapi
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


def opened(capsule):
    """The structure in a capsule."""
    name = api.PyCapsule_GetName(capsule)
    form = {form.name: form for form in (Versioned, Unversioned)}[name]
    structure = form.from_address(api.PyCapsule_GetPointer(capsule, name))
    structure.capsule = capsule  # Which would free it.
    return structure


def lost(reference):
    """Whether what a weak reference points to is gone."""
    gc.collect()
    return reference() is None


class Exporter:
    """An object that gives a capsule of its own making, and counts the deleter's calls."""

    alive: ClassVar = []  # A structure has to live until its deleter is called.

    def __init__(self, array, form=Versioned, dl_device=(ONEAPI, 0), **fields):
        self.alive.append(self)
        self.array, self.form, self.dl_device, self.deleted = array, form, dl_device, 0
        layout = array.__array_interface__ if isinstance(array, np.ndarray) else None
        strides = array.strides if layout is None else [x // array.itemsize for x in array.strides]
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*strides)
        self.structure = structure = form()
        if form is Versioned:
            structure.major, structure.minor = fields.pop("version", (1, 0))
            structure.flags = fields.pop("flags", 0)
        self.delete = structure.deleter = fields.pop("deleter", DELETER(self.count))
        inner = structure.tensor
        inner.data = layout["data"][0] if layout else array._pointer
        inner.device = Device(*dl_device)
        inner.ndim = array.ndim
        kind, size = array.dtype.kind, array.dtype.itemsize
        inner.dtype = DataType({"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[kind], 8 * size, 1)
        inner.shape, inner.strides = self.shape, self.strides
        for name, value in fields.items():
            setattr(inner, name, value)
        self.capsule = api.PyCapsule_New(ctypes.addressof(structure), form.name, None)

    def count(self, structure):
        assert structure == ctypes.addressof(self.structure)
        self.deleted += 1

    def __dlpack__(self, **keywords):
        self.keywords = keywords
        return self.capsule

    def __dlpack_device__(self):
        return self.dl_device


class Giving:
    """An object whose `__dlpack__` is what is given."""

    def __init__(self, give, device=(ONEAPI, 0)):
        self.give, self.device = give, device

    def __dlpack__(self, **_):
        return self.give()

    def __dlpack_device__(self):
        return self.device


@pytest.fixture(autouse=True)
def forget_exporters():
    """After each test, when nothing that was taken from them is left."""
    yield
    if Exporter.alive:
        gc.collect()
        Exporter.alive.clear()


@pytest.fixture
def array(usm_type):
    """A matrix of each kind."""
    return zeusm.asarray(numbers((4, 6)), usm_type=usm_type)


class TestGiving:
    @pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 2), (2, 0)])
    def test_the_form_is_what_the_consumer_knows(self, array, max_version):
        capsule = array.__dlpack__(max_version=max_version)
        structure = opened(capsule)
        if max_version is None or max_version[0] < 1:
            assert isinstance(structure, Unversioned)
        else:
            assert isinstance(structure, Versioned)
            assert (structure.major, structure.minor, structure.flags) == (1, 0, 0)
        assert structure.tensor.data == array._pointer

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_types(self, usm_type, dtype):
        inner = opened(zeusm.empty(3, dtype, usm_type=usm_type).__dlpack__()).tensor
        code = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}[np.dtype(dtype).kind]
        assert (inner.dtype.code, inner.dtype.bits) == (code, 8 * np.dtype(dtype).itemsize)
        assert inner.dtype.lanes == 1

    @pytest.mark.parametrize(
        "key",
        [np.s_[:], np.s_[1:, ::2], np.s_[::-1], np.s_[2, 3], np.s_[..., None, ::-3], np.s_[:0]],
    )
    def test_layouts(self, array, key):
        view = array[key]
        capsule = view.__dlpack__()
        inner = opened(capsule).tensor
        assert tuple(inner.shape[: inner.ndim]) == view.shape
        if view.size:
            assert inner.data + inner.byte_offset == view._pointer
            assert tuple(inner.strides[: inner.ndim]) == view.strides
        if view.size and min(view.strides, default=0) >= 0:
            assert inner.byte_offset == 0

    def test_the_device_is_the_one_dpctl_numbers(self, array):
        device = array.sycl_device
        number = dpctl.get_devices().index(device)
        assert array.__dlpack_device__() == (ONEAPI, number)
        if hasattr(device, "get_device_id"):
            assert number == device.get_device_id()
        theirs = tensor.usm_ndarray((3,), dtype="i4", buffer=array.usm_type)
        assert theirs.__dlpack_device__() == (ONEAPI, number)
        inner = opened(array.__dlpack__(dl_device=(ONEAPI, number))).tensor
        assert (inner.device.type, inner.device.id) == (ONEAPI, number)
        assert array.base.__dlpack_device__() == (ONEAPI, number)

    @pytest.mark.parametrize("device", [(ONEAPI, 99), (CUDA, 0), (ONEAPI, -1)])
    def test_other_devices_are_refused(self, array, device):
        with pytest.raises(BufferError, match="cannot be given on"):
            array.__dlpack__(dl_device=device)

    def test_to_the_host(self, array, usm_type):
        capsule = array[::2].__dlpack__(dl_device=(CPU, 0), max_version=(1, 0))
        structure = opened(capsule)
        inner = structure.tensor
        assert (inner.device.type, inner.device.id) == (CPU, 0)
        if usm_type == "device":
            assert structure.flags == IS_COPIED
            with pytest.raises(BufferError, match="without a copy"):
                array.__dlpack__(dl_device=(CPU, 0), copy=False)
        else:
            assert structure.flags == 0
            assert inner.data == array._pointer
            array.__dlpack__(dl_device=(CPU, 0), copy=False)
            copied = opened(array.__dlpack__(dl_device=(CPU, 0), copy=True, max_version=(1, 0)))
            assert copied.flags == IS_COPIED
        assert ctypes.string_at(inner.data + inner.byte_offset, 4) == numbers(1).tobytes()
        with pytest.raises(ValueError, match="stream"):
            array.__dlpack__(dl_device=(CPU, 0), stream=array.sycl_queue)

    def test_a_copy(self, array):
        capsule = array.T.__dlpack__(copy=True, max_version=(1, 0))
        structure = opened(capsule)
        assert structure.flags == IS_COPIED
        assert structure.tensor.data != array._pointer
        copy = zeusm.from_dlpack(Giving(lambda: capsule, array.__dlpack_device__()))
        assert copy.usm_type == array.usm_type
        np.testing.assert_array_equal(copy.copy_to_host(), numbers((4, 6)).T)

    def test_read_only(self, array):
        pointer = array._pointer

        class Duck:
            __sycl_usm_array_interface__ = array.__sycl_usm_array_interface__ | {
                "data": (pointer, True)
            }

        frozen = zeusm.as_usm_array(Duck())
        assert opened(frozen.__dlpack__(max_version=(1, 0))).flags == READ_ONLY
        with pytest.raises(BufferError, match="read-only"):
            frozen.__dlpack__()
        assert zeusm.from_dlpack(frozen).readonly
        assert not zeusm.from_dlpack(frozen, copy=True).readonly
        capsule = frozen.__dlpack__(max_version=(1, 0), copy=True)
        assert opened(capsule).flags == IS_COPIED
        theirs = tensor.from_dlpack(frozen)
        if NUMPY_2:  # dpctl 0.17 asks for a capsule without a version; see below.
            assert not theirs.flags.writable

    @pytest.mark.parametrize(
        ("shape", "key"), [(0, np.s_[:]), ((2, 0, 3), np.s_[:]), (4, np.s_[4:])]
    )
    def test_an_empty_array_keeps_its_kind(self, usm_type, shape, key):
        array = zeusm.empty(shape, usm_type=usm_type)[key]
        taken = zeusm.from_dlpack(array)
        assert (taken.usm_type, taken.shape) == (usm_type, array.shape)

    def test_another_context_takes_a_copy(self, usm_type):
        device = dpctl.SyclDevice("level_zero:gpu")
        queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        array = zeusm.asarray(numbers(5), usm_type=usm_type, queue=queue)
        assert array.sycl_context != dpctl.SyclQueue(device).sycl_context
        assert array.__dlpack_device__() == zeusm.empty(1).__dlpack_device__()
        with pytest.raises(BufferError, match="context"):
            array.__dlpack__()
        device = array.__dlpack_device__()
        copy = zeusm.from_dlpack(Giving(lambda: array.__dlpack__(copy=True), device))
        assert copy.sycl_context == zeusm.empty(1).sycl_context
        assert copy.copy_to_host().tolist() == [1, 2, 3, 4, 5]

    def test_streams(self, array):
        queue = dpctl.SyclQueue(array.sycl_context, array.sycl_device)
        for stream in None, array.sycl_queue, queue:
            assert opened(array.__dlpack__(stream=stream)).tensor.data == array._pointer
        for wrong in 1, "queue", array.sycl_device:
            with pytest.raises(TypeError, match="SyclQueue"):
                array.__dlpack__(stream=wrong)

    @pytest.mark.parametrize(
        "keywords",
        [{"max_version": 1}, {"max_version": (1,)}, {"dl_device": 14}, {"dl_device": ("gpu", 0)}],
    )
    def test_wrong_arguments(self, array, keywords):
        with pytest.raises((TypeError, ValueError)):
            array.__dlpack__(**keywords)
        with pytest.raises(TypeError):
            array.__dlpack__(None)

    def test_memory_objects_are_bytes(self, memory_class):
        memory = memory_class(64)
        inner = opened(memory.__dlpack__(max_version=(1, 0))).tensor
        assert (inner.data, inner.ndim, inner.shape[0], inner.strides[0]) == (
            memory._pointer,
            1,
            64,
            1,
        )
        assert (inner.dtype.code, inner.dtype.bits) == (1, 8)
        array = zeusm.from_dlpack(memory)
        assert (array._pointer, array.shape, array.dtype) == (memory._pointer, (64,), np.uint8)
        assert tensor.from_dlpack(memory)._pointer == memory._pointer


class TestLifetime:
    @pytest.mark.parametrize("max_version", [None, (1, 0)])
    def test_a_capsule_that_nobody_takes(self, usm_type, max_version):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        capsule = array.__dlpack__(max_version=max_version)
        del array
        assert not lost(memory)
        del capsule
        assert lost(memory)

    @pytest.mark.parametrize("max_version", [None, (1, 0)])
    def test_a_capsule_that_somebody_takes(self, usm_type, max_version):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        capsules = [array.__dlpack__(max_version=max_version)]
        capsule = capsules[0]
        taken = zeusm.from_dlpack(Giving(capsules.pop, array.__dlpack_device__()))
        assert api.PyCapsule_GetName(capsule).startswith(b"used_dltensor")
        del array, capsule
        assert not lost(memory)
        view = taken[3:]
        del taken
        assert not lost(memory)
        assert view.copy_to_host().tolist() == [4, 5, 6, 7, 8, 9]
        del view
        assert lost(memory)

    def test_any_thread_may_call_the_deleter(self, usm_type):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        capsule = array.__dlpack__()
        structure = opened(capsule)
        api.PyCapsule_SetName(capsule, b"used_dltensor")
        del array
        # ctypes lets go of the GIL around the call, so the deleter has to see to that itself.
        thread = threading.Thread(
            target=lambda: structure.deleter(ctypes.addressof(structure)), daemon=True
        )
        thread.start()
        thread.join()
        assert lost(memory)
        del capsule

    @pytest.mark.parametrize("form", [Versioned, Unversioned])
    def test_a_foreign_deleter_is_called_once(self, array, form):
        exporter = Exporter(array, form)
        taken = zeusm.from_dlpack(exporter)
        views = [taken[0], taken.T, taken.base]
        del taken
        gc.collect()
        assert exporter.deleted == 0
        views.clear()
        gc.collect()
        assert exporter.deleted == 1
        with pytest.raises(ValueError, match="used before"):
            zeusm.from_dlpack(exporter)
        assert exporter.deleted == 1

    @pytest.mark.parametrize("form", [Versioned, Unversioned])
    def test_no_deleter(self, array, form):
        exporter = Exporter(array, form, deleter=DELETER())
        assert zeusm.from_dlpack(exporter)._pointer == array._pointer

    def test_host_memory_is_given_back_after_the_copy(self):
        exporter = Exporter(numbers(5), dl_device=(CPU, 0))
        taken = zeusm.from_dlpack(exporter)
        assert exporter.deleted == 1
        assert taken.copy_to_host().tolist() == [1, 2, 3, 4, 5]

    def test_memory_is_not_closed_under_arrays_and_capsules(self, memory_class):
        memory = memory_class(64)
        array = memory.view("u1")
        with pytest.raises(BufferError, match="1 memoryviews, arrays"):
            memory.close()
        capsule = array[3:].__dlpack__()
        del array
        with pytest.raises(BufferError, match="1 memoryviews, arrays"):
            memory.close()
        del capsule
        memory.close()
        with pytest.raises(ValueError, match="closed"):
            memory.view("u1")
        with pytest.raises(ValueError, match="closed"):
            memory.__dlpack__()

    def test_many(self, usm_type):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        for number in range(2000):
            capsule = array.__dlpack__(max_version=(1, 0) if number % 2 else None)
            if number % 3:
                zeusm.from_dlpack(array)
        del capsule, array
        assert lost(memory)


class TestTaking:
    def test_in_place(self, array):
        taken = zeusm.from_dlpack(array[1:, ::2])
        assert (taken.shape, taken.strides) == ((3, 3), (6, 2))
        assert taken._pointer == array[1:]._pointer
        assert (taken.usm_type, taken.sycl_context) == (array.usm_type, array.sycl_context)
        assert type(taken.base) is CLASSES[array.usm_type]
        assert not taken.readonly

    def test_what_is_asked(self, array):
        for keywords in {}, {"copy": False}:
            exporter = Exporter(array)
            zeusm.from_dlpack(exporter, **keywords)
            assert exporter.keywords.pop("stream").sycl_context == array.sycl_context
            assert exporter.keywords == {"max_version": (1, 0)} | keywords
            exporter = Exporter(numbers(3), dl_device=(CPU, 0))
            with contextlib.suppress(BufferError):
                zeusm.from_dlpack(exporter, **keywords)
            assert exporter.keywords == {"max_version": (1, 0)} | keywords

    def test_kernels_are_waited_for(self):
        dpnp = pytest.importorskip("dpnp")
        device = dpctl.SyclDevice("level_zero:gpu")
        for queue in dpctl.SyclQueue(device), dpctl.SyclQueue(device, property="in_order"):
            for size in 10, 10**6:
                theirs = dpnp.full(size, 3, dtype="int32", sycl_queue=queue) * 5
                assert (zeusm.from_dlpack(theirs).copy_to_host() == 15).all()
                theirs = dpnp.full(size, 3, dtype="int32", sycl_queue=queue) * 7
                assert (zeusm.as_usm_array(theirs).copy_to_host() == 21).all()
                theirs = dpnp.full(size, 3, dtype="int32", sycl_queue=queue) * 9
                taken = zeusm.memory.as_usm_memory(theirs)
                assert (taken.copy_to_host().view("int32") == 27).all()

    def test_read_only_is_kept(self, array):
        assert zeusm.from_dlpack(Exporter(array, flags=READ_ONLY)).readonly
        assert not zeusm.from_dlpack(Exporter(array, flags=IS_COPIED)).readonly

    def test_exporters_from_before_versions(self, array):
        class Old(Exporter):
            def __dlpack__(self, stream=None):
                return self.capsule

        assert zeusm.from_dlpack(Old(array, Unversioned))._pointer == array._pointer

    def test_offsets_and_missing_strides(self, array):
        exporter = Exporter(array[1:], strides=None, byte_offset=8)
        exporter.structure.tensor.data = array._pointer
        exporter.structure.tensor.ndim = 1
        taken = zeusm.from_dlpack(exporter)
        assert taken.copy_to_host().tolist() == [3, 4, 5]
        exporter = Exporter(array[:1, :2], dtype=DataType(1, 8, 1), byte_offset=5)
        assert zeusm.from_dlpack(exporter)._pointer == array._pointer + 5
        exporter = Exporter(array[:1, :2], dtype=DataType(1, 16, 1), byte_offset=5)
        assert zeusm.from_dlpack(exporter)._pointer == array._pointer + 5

    def test_no_elements(self, array):
        for data in None, array._pointer:
            taken = zeusm.from_dlpack(Exporter(array[:, :0], data=data))
            assert taken.shape == (4, 0)
            assert taken.copy_to_host().shape == (4, 0)
        assert zeusm.from_dlpack(array[:0]).shape == (0, 6)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"version": (2, 0)}, "DLPack 2.0"),
            ({"data": None}, "null"),
            ({"data": 4096}, "not in the default context"),
            ({"ndim": -1}, "ndim"),
            ({"ndim": 1000}, "ndim"),
            ({"shape": None}, "null"),
            ({"shape": (ctypes.c_int64 * 2)(-1, 6)}, "negative"),
            ({"shape": (ctypes.c_int64 * 2)(4, 7)}, "touches"),
            ({"shape": (ctypes.c_int64 * 2)(2**62, 4)}, "any memory"),
            ({"strides": (ctypes.c_int64 * 2)(2**40, 1)}, "touches"),
            ({"strides": (ctypes.c_int64 * 2)(-6, 1)}, "touches"),
            ({"byte_offset": 4}, "touches"),
            ({"byte_offset": 2**64 - 4}, "reach"),
            ({"dtype": DataType(0, 32, 4)}, "4 lanes"),
            ({"dtype": DataType(0, 32, 0)}, "0 lanes"),
            ({"dtype": DataType(0, 4, 1)}, "4 bits"),
            ({"dtype": DataType(4, 16, 1)}, "type code 4"),
            ({"dtype": DataType(3, 64, 1)}, "type code 3"),
            ({"dtype": DataType(2, 128, 1)}, "not supported"),
            ({"device": Device(CUDA, 0)}, "kDLCUDA"),
            ({"device": Device(99, 0)}, "(99, 0)"),
            ({"device": Device(ONEAPI, 99)}, "no SYCL device 99"),
            ({"device": Device(ONEAPI, -1)}, "no SYCL device -1"),
        ],
        ids=lambda value: value if isinstance(value, str) else next(iter(value)),
    )
    def test_bad_tensors_stay_their_makers(self, array, fields, message):
        exporter = Exporter(array, **fields)
        with pytest.raises(BufferError, match=re.escape(message)):
            zeusm.from_dlpack(exporter)
        assert api.PyCapsule_GetName(exporter.capsule) == b"dltensor_versioned"
        assert exporter.deleted == 0

    def test_bad_capsules(self, array):
        for name in b"tensor", b"dltensor2", None:
            exporter = Exporter(array)
            api.PyCapsule_SetName(exporter.capsule, name)
            with pytest.raises(TypeError, match="capsule"):
                zeusm.from_dlpack(exporter)
        exporter.capsule = 5
        with pytest.raises(TypeError, match="capsule"):
            zeusm.from_dlpack(exporter)
        for wrong in 5, "dltensor", exporter.structure:
            with pytest.raises(TypeError, match="__dlpack__"):
                zeusm.from_dlpack(wrong)

    def test_an_exporters_own_error_is_seen(self):
        class Broken:
            def __dlpack__(self, **_):
                raise RuntimeError("out of ideas")

            def __dlpack_device__(self):
                return (ONEAPI, 0)

        with pytest.raises(RuntimeError, match="out of ideas"):
            zeusm.from_dlpack(Broken())

    def test_other_devices_are_asked_for_the_host(self):
        exporter = Exporter(numbers(4), dl_device=(CPU, 0))
        exporter.dl_device = (CUDA, 0)
        assert zeusm.from_dlpack(exporter).copy_to_host().tolist() == [1, 2, 3, 4]
        assert exporter.keywords["dl_device"] == (CPU, 0)

    def test_to_another_place(self, array):
        queue = dpctl.SyclQueue(dpctl.SyclContext([array.sycl_device]), array.sycl_device)
        moved = zeusm.from_dlpack(array.T, device=queue)
        assert moved.sycl_context == queue.sycl_context != array.sycl_context
        np.testing.assert_array_equal(moved.copy_to_host(), numbers((4, 6)).T)
        with pytest.raises(BufferError, match="copy"):
            zeusm.from_dlpack(array, device=queue, copy=False)
        device = array.__dlpack_device__()
        assert zeusm.from_dlpack(array, device=device, copy=False)._pointer == array._pointer
        assert zeusm.from_dlpack(array, device=device, copy=True)._pointer != array._pointer
        with pytest.raises(ValueError, match="kDLCPU"):
            zeusm.from_dlpack(array, device=(CPU, 0))
        with pytest.raises(BufferError, match="no SYCL device"):
            zeusm.from_dlpack(array, device=(ONEAPI, 99))


class TestNumpy:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_from_numpy_is_a_copy(self, dtype):
        source = numbers((3, 4), dtype)
        for view in source, source.T, source[::2, 1:]:
            array = zeusm.from_dlpack(view)
            assert array.usm_type == "device"
            np.testing.assert_array_equal(array.copy_to_host(), view)
            with pytest.raises(BufferError, match="copy is False"):
                zeusm.from_dlpack(view, copy=False)

    def test_from_a_read_only_array(self):
        source = numbers(4)
        source.flags.writeable = False
        if NUMPY_2:
            assert zeusm.from_dlpack(source).copy_to_host().tolist() == [1, 2, 3, 4]
        else:  # NumPy 1 knows no way to say so.
            with pytest.raises(BufferError, match="readonly"):
                zeusm.from_dlpack(source)

    def test_usm_that_numpy_only_looks_at_is_taken_in_place(self, host_class):
        array = host_class(64).view("int32")
        back = zeusm.from_dlpack(np.asarray(array)[::2], copy=False)
        assert (back._pointer, back.strides) == (array._pointer, (2,))
        assert back.usm_type == array.usm_type

    @pytest.mark.skipif(not NUMPY_2, reason="NumPy 1 cannot ask for the host")
    def test_to_numpy(self, array, usm_type):
        for view, wanted in (array, numbers((4, 6))), (array[::-1, 1:], numbers((4, 6))[::-1, 1:]):
            host = np.from_dlpack(view, device="cpu")
            np.testing.assert_array_equal(host, wanted)
            if usm_type != "device":
                assert host.ctypes.data == view._pointer
                assert np.from_dlpack(view, device="cpu", copy=True).ctypes.data != view._pointer
            else:
                with pytest.raises(BufferError):
                    np.from_dlpack(view, device="cpu", copy=False)

    def test_numpy_keeps_the_memory(self, host_class):
        memory = host_class(64)
        memory.memset(7)
        capsules = [memory.view("u1").__dlpack__(dl_device=(CPU, 0))]
        host = np.from_dlpack(Giving(capsules.pop, (CPU, 0)))
        reference = weakref.ref(memory)
        del memory
        assert not lost(reference)
        assert (host == 7).all()
        del host
        assert lost(reference)


class TestPeers:
    """dpctl.tensor or dpnp.tensor, and dpnp."""

    @pytest.mark.parametrize("key", [np.s_[:], np.s_[1:, ::2], np.s_[::-1], np.s_[2, 3], np.s_[:0]])
    def test_there(self, array, key):
        view = array[key]
        theirs = tensor.from_dlpack(view)
        assert isinstance(theirs, tensor.usm_ndarray)
        assert (theirs.shape, theirs.dtype) == (view.shape, view.dtype)
        if view.size:
            assert (theirs._pointer, theirs.strides) == (view._pointer, view.strides)
            assert theirs.usm_type == view.usm_type
            assert theirs.sycl_context == view.sycl_context
            back = zeusm.from_dlpack(theirs)
            assert (back._pointer, back.strides) == (view._pointer, view.strides)
            np.testing.assert_array_equal(back.copy_to_host(), numbers((4, 6))[key])

    def test_dpnp(self, array):
        dpnp = pytest.importorskip("dpnp")
        theirs = dpnp.from_dlpack(array)
        assert theirs.get_array()._pointer == array._pointer
        assert zeusm.from_dlpack(theirs)._pointer == array._pointer

    def test_dpnp_computes_in_place(self, array):
        dpnp = pytest.importorskip("dpnp")
        theirs = dpnp.from_dlpack(array[:, ::-2])
        assert int(theirs.sum()) == numbers((4, 6))[:, ::-2].sum()
        theirs += 100
        wanted = numbers((4, 6))
        wanted[:, ::-2] += 100
        np.testing.assert_array_equal(array.copy_to_host(), wanted)
        squares = zeusm.from_dlpack(dpnp.arange(5, dtype="int32") ** 2)
        assert squares.copy_to_host().tolist() == [0, 1, 4, 9, 16]

    def test_their_own(self, usm_type):
        theirs = tensor.usm_ndarray((4, 6), dtype="i4", buffer=usm_type)
        theirs.usm_data.copy_from_host(numbers((4, 6)).view("u1").reshape(-1))
        for key in np.s_[:], np.s_[1:, ::2], np.s_[::-1], np.s_[2, 3]:
            mine = zeusm.from_dlpack(theirs[key])
            assert (mine._pointer, mine.usm_type) == (theirs[key]._pointer, usm_type)
            np.testing.assert_array_equal(mine.copy_to_host(), numbers((4, 6))[key])
        assert zeusm.from_dlpack(tensor.usm_ndarray((0, 3), dtype="i4")).shape == (0, 3)

    def test_they_keep_the_memory(self, usm_type):
        array = zeusm.asarray(numbers(9), usm_type=usm_type)
        memory = weakref.ref(array.base)
        theirs = tensor.from_dlpack(array)
        del array
        assert not lost(memory)
        del theirs
        assert lost(memory)


class TestPyTorch:
    """PyTorch for the CPU: shared and host memory goes there in place, its own memory comes as a copy."""

    @pytest.fixture
    def torch(self):
        return pytest.importorskip(
            "torch",
            reason="PyTorch is not here: its wheels for Linux bring a gigabyte and more, mostly for other GPUs",
        )

    @pytest.mark.parametrize("key", [np.s_[:], np.s_[1:, ::2], np.s_[2, 3], np.s_[:0]])
    def test_there_and_back(self, torch, host_class, key):
        memory = host_class(96)
        array = memory.view("int32", (4, 6))
        array.copy_from_host(numbers((4, 6)))
        view = array[key]
        theirs = torch.from_dlpack(view.__dlpack__(dl_device=(CPU, 0)))
        assert theirs.tolist() == numbers((4, 6))[key].tolist()
        if not view.size:
            return
        assert (theirs.data_ptr(), theirs.stride()) == (view._pointer, view.strides)
        theirs += 100
        assert view.copy_to_host().tolist() == (numbers((4, 6))[key] + 100).tolist()
        assert zeusm.from_dlpack(theirs, copy=False)._pointer == view._pointer

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float64", "complex64"])
    def test_types(self, torch, host_class, dtype):
        array = zeusm.asarray(numbers((2, 3), dtype), usm_type="shared")
        theirs = torch.from_dlpack(array.__dlpack__(dl_device=(CPU, 0)))
        assert str(theirs.dtype) == f"torch.{dtype}"
        assert zeusm.from_dlpack(theirs).dtype == dtype

    def test_by_way_of_numpy(self, torch, host_class):
        array = host_class(24).view("float64")
        assert torch.from_numpy(np.asarray(array)).data_ptr() == array._pointer

    def test_its_own_memory_is_copied(self, torch):
        theirs = torch.arange(6).reshape(2, 3).T
        mine = zeusm.from_dlpack(theirs)
        assert mine.usm_type == "device"
        assert mine.copy_to_host().tolist() == [[0, 3], [1, 4], [2, 5]]
        with pytest.raises(BufferError, match="copy"):
            zeusm.from_dlpack(theirs, copy=False)

    def test_device_memory_is_copied_to_the_host(self, torch):
        array = zeusm.asarray(numbers((2, 3)), usm_type="device")
        theirs = torch.from_dlpack(array.__dlpack__(dl_device=(CPU, 0)))
        assert theirs.tolist() == numbers((2, 3)).tolist()

    def test_it_keeps_the_memory(self, torch):
        array = zeusm.asarray(numbers(9), usm_type="shared")
        memory = weakref.ref(array.base)
        theirs = torch.from_dlpack(array.__dlpack__(dl_device=(CPU, 0)))
        part = theirs[3:]
        del array, theirs
        assert not lost(memory)
        assert part.tolist() == list(range(4, 10))
        del part
        assert lost(memory)


@given(
    data=st.data(),
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    dtype=st.sampled_from(["u1", "i4", "f8", "c8"]),
    kind=st.sampled_from(list(CLASSES)),
)
@settings(max_examples=150, deadline=None)
def test_any_view_goes_there_and_back(data, shape, dtype, kind):
    wanted = numbers(shape, dtype)
    array = zeusm.asarray(wanted, usm_type=kind)
    key = data.draw(indices(shape))
    back = zeusm.from_dlpack(array[key], copy=data.draw(st.sampled_from([None, True, False])))
    assert back.shape == wanted[key].shape
    np.testing.assert_array_equal(back.copy_to_host(), wanted[key])


def test_without_sycl_arrays_are_on_the_host(fresh):
    fresh("""
        import sys

        sys.modules["dpctl"] = None  # As if it were not installed.
        import numpy as np
        import zeusm

        source = np.arange(12, dtype="float32").reshape(3, 4)
        for usm_type in "shared", "host", "device":
            array = zeusm.asarray(source, usm_type=usm_type)[::-1, 1:]
            assert (array.copy_to_host() == source[::-1, 1:]).all()
            array.copy_from_host(-source[::-1, 1:])
            assert (array.copy_to_host() == -source[::-1, 1:]).all()
            copy = zeusm.asarray(array, usm_type="host", copy=True)
            assert (np.asarray(copy) == -source[::-1, 1:]).all()
            assert zeusm.pointer_attributes(array._pointer).usm_type == usm_type
            try:
                array.__sycl_usm_array_interface__
            except RuntimeError as error:
                assert "dpctl" in str(error), error
            else:
                raise AssertionError("a SUAI without a SYCL runtime")
            if usm_type == "device":
                for ask in array.__dlpack__, array.__dlpack_device__:
                    try:
                        ask()
                    except BufferError as error:
                        assert "dpctl" in str(error), error
                    else:
                        raise AssertionError("a SYCL device without a SYCL runtime")
                array.__dlpack__(dl_device=(1, 0))
            else:
                assert array.__dlpack_device__() == (1, 0)
                assert np.from_dlpack(array).ctypes.data == array._pointer
                assert zeusm.from_dlpack(np.asarray(array), copy=False)._pointer == array._pointer
    """)


@pytest.mark.skipif(
    dpctl.__version__ < "0.19", reason="dpnp 0.15 takes DLPack of dpctl's arrays only"
)
def test_wide_numbers_without_a_compiler(fresh):
    """dpnp asks the device whether it has float64 before it takes an array of it."""
    program = """
    import zeusm
    import dpnp
    for dtype in ("float64", "complex128", "float16"):
        assert dpnp.from_dlpack(zeusm.empty(10, dtype=dtype)).dtype == dtype
    """
    fresh(program, env={"ZEUSM_OPENCL_LIBRARY": "/there/is/none.so"})
