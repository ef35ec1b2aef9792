"""DLPack import: in-place imports, and rejected capsules."""

import contextlib
import ctypes
import enum
import re

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory
from arrays import numbers
from conftest import CLASSES
from dlpack_abi import (
    CPU,
    CUDA,
    IS_COPIED,
    ONEAPI,
    READ_ONLY,
    DataType,
    Device,
    Exporter,
    Unversioned,
    api,
)
from tensors import tensor

pytestmark = pytest.mark.usefixtures("forget_exporters")


class TestImport:
    def test_in_place(self, array):
        taken = zeusm.from_dlpack(array[1:, ::2])
        assert (taken.shape, taken.strides) == ((3, 3), (6, 2))
        assert taken._pointer == array[1:]._pointer
        assert (taken.usm_type, taken.sycl_context) == (array.usm_type, array.sycl_context)
        assert type(taken.base) is CLASSES[array.usm_type]
        assert not taken.readonly

    def test_a_field_of_packed_records_is_not_copied_silently(self, usm_type):
        field = zeusm.empty(3, [("x", "f4"), ("y", "i8")], usm_type=usm_type)["y"]
        for copy in None, False:
            with pytest.raises(BufferError, match="copy.copy"):
                zeusm.from_dlpack(field, copy=copy)

    def test_the_keywords_of_the_request(self, array):
        for keywords in {}, {"copy": False}:
            exporter = Exporter(array)
            zeusm.from_dlpack(exporter, **keywords)
            assert exporter.keywords.pop("stream").sycl_context == array.sycl_context
            assert exporter.keywords == {"max_version": (1, 3)} | keywords
            exporter = Exporter(numbers(3), dl_device=(CPU, 0))
            with contextlib.suppress(BufferError):
                zeusm.from_dlpack(exporter, **keywords)
            assert exporter.keywords == {"max_version": (1, 3)} | keywords

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

    def test_a_copy_is_writable(self, array):
        exporter = Exporter(array, flags=READ_ONLY | IS_COPIED)
        copy = zeusm.from_dlpack(exporter, copy=True)
        assert not copy.readonly
        assert copy._pointer != array._pointer
        assert (
            zeusm.from_dlpack(Exporter(array, flags=IS_COPIED), copy=True)._pointer
            == array._pointer
        )

    def test_exporters_from_before_versions(self, array):
        class Old(Exporter):
            def __dlpack__(self, stream=None):
                return self.capsule

        assert zeusm.from_dlpack(Old(array, Unversioned))._pointer == array._pointer

    def test_exporters_that_refuse_the_queue(self, array):
        """They are asked for the same without it."""

        class Strict(Exporter):
            def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
                if stream not in (None, -1):
                    raise TypeError("stream must be an integer")
                self.keywords = {"max_version": max_version, "copy": copy}
                return self.capsule

        exporter = Strict(array)
        assert zeusm.from_dlpack(exporter, copy=False)._pointer == array._pointer
        assert exporter.keywords == {"max_version": (1, 3), "copy": False}

    def test_a_copy_is_refused_if_there_must_be_none(self, array):
        exporter = Exporter(array, flags=IS_COPIED)
        with pytest.raises(BufferError, match="copy"):
            zeusm.from_dlpack(exporter, copy=False)
        assert api.PyCapsule_GetName(exporter.capsule) == b"dltensor_versioned"

    def test_a_capsule_that_is_taken_meanwhile(self):
        array = zeusm.empty(0, usm_type="shared")

        class Taken(Exporter):
            @property
            def usm_type(self):
                api.PyCapsule_SetName(self.capsule, b"used_dltensor_versioned")
                return "shared"

        exporter = Taken(array)
        with pytest.raises(ValueError, match="used before"):
            zeusm.from_dlpack(exporter)
        assert exporter.deleted == 0

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
            ({"dtype": DataType(4, 32, 1)}, "type code 4"),
            ({"dtype": DataType(3, 64, 1)}, "type code 3"),
            ({"dtype": DataType(2, 128, 1)}, "not supported"),
            ({"device": Device(CUDA, 0)}, "kDLCUDA"),
            ({"device": Device(99, 0)}, "(99, 0)"),
            ({"device": Device(ONEAPI, 99)}, "no SYCL device 99"),
            ({"device": Device(ONEAPI, -1)}, "no SYCL device -1"),
        ],
        ids=lambda value: value if isinstance(value, str) else next(iter(value)),
    )
    def test_bad_tensors_stay_their_producers(self, array, fields, message):
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

    def test_an_exporters_own_error_propagates(self):
        class Broken:
            def __dlpack__(self, **_):
                raise RuntimeError("out of ideas")

            def __dlpack_device__(self):
                return (ONEAPI, 0)

        with pytest.raises(RuntimeError, match="out of ideas"):
            zeusm.from_dlpack(Broken())

    @pytest.mark.parametrize("device", [None, "gpu", (1,), (1, 0, 0), (1, 0.0), (1, 1 << 40)])
    def test_an_exporters_wrong_device_is_named(self, device):
        exporter = Exporter(numbers(4), dl_device=(CPU, 0))
        exporter.dl_device = device
        with pytest.raises((TypeError, BufferError), match="__dlpack_device__"):
            zeusm.from_dlpack(exporter)

    @pytest.mark.parametrize("base", [enum.Enum, enum.IntEnum])
    def test_the_type_of_the_device_is_a_member_of_an_enum(self, usm_type, base):
        """As in the array API's specification, of Open3D and nanobind."""
        array = zeusm.asarray([1, 2], usm_type=usm_type)
        kind, number = array.__dlpack_device__()
        members = base("DLDeviceType", {"CPU": 1, "ONE_API": kind})

        class Exporter:
            __dlpack__ = array.__dlpack__

            def __dlpack_device__(self):
                return members.ONE_API, number

        assert zeusm.from_dlpack(Exporter())._pointer == array._pointer
        wrong = enum.Enum("Wrong", {"NAME": "cpu"})
        Exporter.__dlpack_device__ = lambda self: (wrong.NAME, 0)
        with pytest.raises(TypeError, match="pair of integers, not"):
            zeusm.from_dlpack(Exporter())

    def test_other_devices_are_asked_for_the_host(self):
        exporter = Exporter(numbers(4), dl_device=(CPU, 0))
        exporter.dl_device = (CUDA, 0)
        assert zeusm.from_dlpack(exporter).copy_to_host().tolist() == [1, 2, 3, 4]
        assert exporter.keywords["dl_device"] == (CPU, 0)

    def test_to_another_context(self, array):
        queue = dpctl.SyclQueue(dpctl.SyclContext([array.sycl_device]), array.sycl_device)
        moved = zeusm.from_dlpack(array.T, device=queue)
        assert moved.sycl_context == queue.sycl_context != array.sycl_context
        np.testing.assert_array_equal(moved.copy_to_host(), numbers((4, 6)).T)
        with pytest.raises(BufferError, match="copy"):
            zeusm.from_dlpack(array, device=queue, copy=False)
        exporter = Exporter(array)
        with pytest.raises(BufferError, match="copy"):
            zeusm.from_dlpack(exporter, device=queue, copy=False)
        assert api.PyCapsule_GetName(exporter.capsule) == b"dltensor_versioned"
        device = array.__dlpack_device__()
        assert zeusm.from_dlpack(array, device=device, copy=False)._pointer == array._pointer
        assert zeusm.from_dlpack(array, device=device, copy=True)._pointer != array._pointer
        with pytest.raises(ValueError, match="kDLCPU"):
            zeusm.from_dlpack(array, device=(CPU, 0))
        with pytest.raises(BufferError, match="no SYCL device"):
            zeusm.from_dlpack(array, device=(ONEAPI, 99))


EMPTY = [np.s_[:0], np.s_[2:2], np.s_[4:], np.s_[:, 4:], np.s_[:, :0]]


class TestWithoutElements:
    """The kind is the exporter's, although the pointer may be null or in no allocation."""

    @pytest.mark.parametrize("key", EMPTY)
    def test_arrays(self, usm_type, key):
        array = zeusm.empty((4, 4), usm_type=usm_type)[key]
        whole = zeusm.asarray(zeusm.memory.as_usm_memory(array), usm_type=usm_type)
        for source in array, whole:
            for copy in None, False, True:
                taken = zeusm.from_dlpack(source, copy=copy)
                assert (taken.usm_type, taken.shape) == (usm_type, source.shape)

    @pytest.mark.parametrize("key", EMPTY)
    def test_arrays_of_peers(self, usm_type, key):
        theirs = tensor.empty((4, 4), usm_type=usm_type)[key]
        taken = zeusm.from_dlpack(theirs)
        assert (taken.usm_type, taken.shape) == (usm_type, theirs.shape)

    @pytest.mark.parametrize("start", [0, 32, 64])
    def test_slices_of_memory(self, memory_class, usm_type, start):
        memory = memory_class(64)[start:start]
        for taken in zeusm.from_dlpack(memory), zeusm.as_usm_array(memory), zeusm.asarray(memory):
            assert (taken.usm_type, taken.shape, taken.dtype) == (usm_type, (0,), np.uint8)
            assert type(taken.base) is memory_class

    @pytest.mark.parametrize("host_type", ["shared", "host"])
    def test_views_of_the_host(self, host_type):
        array = zeusm.empty((4, 4), usm_type=host_type)
        for view in np.asarray(array)[:0], np.asarray(array)[:, 2:2]:
            for copy in None, False, True:
                taken = zeusm.from_dlpack(view, copy=copy)
                assert (taken.usm_type, taken.shape) == (host_type, view.shape)
        assert zeusm.from_dlpack(np.empty((0, 3))).usm_type == "device"

    def test_without_sycl(self, fresh):
        fresh("""
        import sys
        sys.modules["dpctl"] = None
        import zeusm, zeusm.memory
        for kind in "shared", "host":
            array = zeusm.empty(4, usm_type=kind)
            assert array.__dlpack_device__() == (1, 0)
            for source in array[:0], array[4:], array[2:2], zeusm.memory.as_usm_memory(array)[8:8]:
                assert zeusm.from_dlpack(source).usm_type == kind
        """)

    def test_what_an_exporter_declares_is_checked(self, usm_type):
        class Declared(Exporter):
            pass

        array = zeusm.empty(4, usm_type=usm_type)[:0]
        for declared in "private", None, 3:
            Declared.usm_type = declared
            assert zeusm.from_dlpack(Declared(array)).usm_type == usm_type
