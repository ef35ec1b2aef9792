"""DLPack export: the fields of the structure, and rejected requests."""

import ctypes

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory
from arrays import DTYPES, numbers
from dlpack_abi import (
    CPU,
    CUDA,
    IS_COPIED,
    NUMPY_2,
    ONEAPI,
    READ_ONLY,
    Producer,
    Unversioned,
    Versioned,
    structure_in,
)
from tensors import tensor


class TestExport:
    @pytest.mark.parametrize(
        "max_version", [None, (-1, 0), (0, 8), (1, 0), (1, 2), (2, 0), (1 << 40, 1 << 40)]
    )
    def test_the_form_is_the_newest_that_the_consumer_knows(self, array, max_version):
        capsule = array.__dlpack__(max_version=max_version)
        structure = structure_in(capsule)
        if max_version is None or max_version[0] < 1:
            assert isinstance(structure, Unversioned)
        else:
            assert isinstance(structure, Versioned)
            assert (structure.major, structure.minor, structure.flags) == (1, 3, 0)
        assert structure.tensor.data == array._pointer

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_types(self, usm_type, dtype):
        inner = structure_in(zeusm.empty(3, dtype, usm_type=usm_type).__dlpack__()).tensor
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
        inner = structure_in(capsule).tensor
        assert tuple(inner.shape[: inner.ndim]) == view.shape
        if view.size:
            assert inner.data + inner.byte_offset == view._pointer
            assert tuple(inner.strides[: inner.ndim]) == view.strides
        if view.size and min(view.strides, default=0) >= 0:
            assert inner.byte_offset == 0

    @pytest.mark.skipif(
        dpctl.__version__ < "0.19", reason="its from_dlpack has no argument for the device"
    )
    @pytest.mark.parametrize("key", [np.s_[::-1], np.s_[1:, ::-2]])
    def test_dpnp_imports_negative_strides_to_the_host(self, array, key):
        view = array[key]
        imported = tensor.from_dlpack(view, device=(CPU, 0))
        assert isinstance(imported, np.ndarray)
        assert imported.tolist() == view.copy_to_host().tolist()
        inner = structure_in(view.__dlpack__(dl_device=(CPU, 0))).tensor
        assert inner.byte_offset == 0

    def test_the_device_is_the_one_dpctl_numbers(self, array):
        device = array.sycl_device
        number = dpctl.get_devices().index(device)
        assert array.__dlpack_device__() == (ONEAPI, number)
        if hasattr(device, "get_device_id"):
            assert number == device.get_device_id()
        theirs = tensor.usm_ndarray((3,), dtype="i4", buffer=array.usm_type)
        assert theirs.__dlpack_device__() == (ONEAPI, number)
        inner = structure_in(array.__dlpack__(dl_device=(ONEAPI, number))).tensor
        assert (inner.device.type, inner.device.id) == (ONEAPI, number)
        assert array.base.__dlpack_device__() == (ONEAPI, number)

    @pytest.mark.parametrize("device", [(ONEAPI, 99), (CUDA, 0), (ONEAPI, -1)])
    def test_other_devices_are_refused(self, array, device):
        with pytest.raises(BufferError, match="cannot be exported to"):
            array.__dlpack__(dl_device=device)

    @pytest.mark.parametrize("device", [(1 << 40, 0), (ONEAPI, 1 << 40), (CPU, -(1 << 70))])
    def test_numbers_that_no_device_has_are_refused(self, array, device):
        for export in array.__dlpack__, array.base.__dlpack__:
            with pytest.raises(BufferError, match="dl_device is .*no device has this number"):
                export(dl_device=device)
        with pytest.raises(BufferError, match="device is .*no device has this number"):
            zeusm.from_dlpack(array, device=device)

    def test_to_the_host(self, array, usm_type):
        capsule = array[::2].__dlpack__(dl_device=(CPU, 0), max_version=(1, 0))
        structure = structure_in(capsule)
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
            copied = structure_in(
                array.__dlpack__(dl_device=(CPU, 0), copy=True, max_version=(1, 0))
            )
            assert copied.flags == IS_COPIED
        assert ctypes.string_at(inner.data + inner.byte_offset, 4) == numbers(1).tobytes()
        with pytest.raises(ValueError, match="stream"):
            array.__dlpack__(dl_device=(CPU, 0), stream=array.sycl_queue)

    def test_a_copy(self, array):
        capsule = array.T.__dlpack__(copy=True, max_version=(1, 0))
        structure = structure_in(capsule)
        assert structure.flags == IS_COPIED
        assert structure.tensor.data != array._pointer
        copy = zeusm.from_dlpack(Producer(lambda: capsule, array.__dlpack_device__()))
        assert copy.usm_type == array.usm_type
        np.testing.assert_array_equal(copy.copy_to_host(), numbers((4, 6)).T)

    def test_read_only(self, array):
        pointer = array._pointer

        class Duck:
            __sycl_usm_array_interface__ = array.__sycl_usm_array_interface__ | {
                "data": (pointer, True)
            }

        frozen = zeusm.as_usm_array(Duck())
        assert structure_in(frozen.__dlpack__(max_version=(1, 0))).flags == READ_ONLY
        with pytest.raises(BufferError, match="read-only"):
            frozen.__dlpack__()
        assert zeusm.from_dlpack(frozen).readonly
        assert not zeusm.from_dlpack(frozen, copy=True).readonly
        capsule = frozen.__dlpack__(max_version=(1, 0), copy=True)
        assert structure_in(capsule).flags == IS_COPIED
        theirs = tensor.from_dlpack(frozen)
        if NUMPY_2:  # dpctl 0.17 requests an unversioned capsule; see below.
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
        producer = Producer(lambda: array.__dlpack__(copy=True), device)
        copy = zeusm.from_dlpack(producer)
        assert copy.sycl_context == zeusm.empty(1).sycl_context
        assert copy.copy_to_host().tolist() == [1, 2, 3, 4, 5]
        # An array of zeusm itself is used in place, in whatever context.
        for keywords in {}, {"copy": False}:
            assert zeusm.from_dlpack(array, **keywords)._pointer == array._pointer
        assert zeusm.from_dlpack(array, device=queue).sycl_context == array.sycl_context

    def test_streams(self, array):
        queue = dpctl.SyclQueue(array.sycl_context, array.sycl_device)
        # An integer is the address of a queue.
        for stream in None, array.sycl_queue, queue, 1 << 40:
            assert structure_in(array.__dlpack__(stream=stream)).tensor.data == array._pointer
        for wrong in 0, -2, -1.0, "queue", array.sycl_device:
            with pytest.raises(TypeError, match="stream must be a dpctl.SyclQueue"):
                array.__dlpack__(stream=wrong)

    @pytest.mark.parametrize(
        "keywords",
        [
            {"max_version": 1},
            {"max_version": (1,)},
            {"max_version": (1, 0.0)},
            {"max_version": ("1", 0)},
            {"max_version": (1 << 70, 0)},
            {"dl_device": 14},
            {"dl_device": (14, 0, 0)},
            {"dl_device": ("gpu", 0)},
            {"dl_device": (14, 0.0)},
        ],
    )
    def test_wrong_arguments(self, array, keywords):
        (name,) = keywords
        with pytest.raises((TypeError, ValueError), match=name):
            array.__dlpack__(**keywords)
        with pytest.raises(TypeError):
            array.__dlpack__(None)

    def test_memory_objects_are_bytes(self, memory_class):
        memory = memory_class(64)
        inner = structure_in(memory.__dlpack__(max_version=(1, 0))).tensor
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
