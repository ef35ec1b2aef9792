"""Export and import of arrays by the buffer protocol and the two array interfaces."""

import ctypes
import gc
import weakref

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory
from arrays import DTYPES, numbers
from conftest import CLASSES
from tensors import tensor
from test_buffer import (
    ANY_CONTIGUOUS,
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    FLAGS,
    FORMAT,
    FULL,
    ND,
    SIMPLE,
    STRIDES,
    WRITABLE,
    Buffer,
    get_buffer,
    release_buffer,
)


@pytest.fixture(params=["shared", "host"])
def host_type(request):
    """The kinds of host-accessible memory."""
    return request.param


class TestBuffer:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_numpy_gets_a_typed_view(self, host_type, dtype):
        array = zeusm.asarray(numbers((2, 3), dtype), usm_type=host_type)
        view = np.asarray(array)
        assert (view.dtype, view.shape) == (np.dtype(dtype), (2, 3))
        assert view.ctypes.data == array._pointer
        assert view.flags.writeable
        np.testing.assert_array_equal(view, numbers((2, 3), dtype))
        view[1, 2] = 0
        assert array[1, 2].copy_to_host()[()] == 0

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float64"])
    def test_memoryview_indexes_it(self, host_type, dtype):
        source = numbers(5, dtype)
        view = memoryview(zeusm.asarray(source, usm_type=host_type))
        assert view.tolist() == source.tolist()
        # NumPy names a 32-bit integer of Windows by C's `long`.
        assert np.dtype(view.format) == np.dtype(memoryview(source).format)

    def test_strides_go_along(self, host_type):
        source = numbers((4, 6))
        array = zeusm.asarray(source, usm_type=host_type)
        for key in np.s_[::2, ::-1], np.s_[:, 3], np.s_[::-1], np.s_[1:3, 2:4]:
            view = memoryview(array[key])
            assert (view.shape, view.strides) == (source[key].shape, source[key].strides)
            assert view.tolist() == source[key].tolist()
            assert np.asarray(array[key]).ctypes.data == array[key]._pointer
        assert memoryview(array.T).f_contiguous

    @pytest.mark.parametrize("layout", ["C", "F", "neither", "both"])
    @pytest.mark.parametrize("name", FLAGS)
    def test_flags(self, host_type, name, layout):
        flags = FLAGS[name]
        whole = zeusm.empty((4, 6), "uint8", usm_type=host_type)
        array = {"C": whole, "F": whole.T, "neither": whole[::2, ::2], "both": whole[0]}[layout]
        c_order, f_order = layout in ("C", "both"), layout in ("F", "both")
        refused = (
            (flags & C_CONTIGUOUS == C_CONTIGUOUS and not c_order)
            or (flags & F_CONTIGUOUS == F_CONTIGUOUS and not f_order)
            or (flags & ANY_CONTIGUOUS == ANY_CONTIGUOUS and not (c_order or f_order))
            or (flags & STRIDES != STRIDES and not c_order)
        )
        buffer = Buffer()
        if refused:
            with pytest.raises(BufferError, match="contiguous"):
                get_buffer(array, buffer, flags)
            assert not buffer.buf
            return
        assert get_buffer(array, buffer, flags) == 0
        try:
            assert (buffer.buf, buffer.len, buffer.itemsize) == (array._pointer, array.size, 1)
            assert buffer.readonly == 0
            assert buffer.format == (b"B" if flags & FORMAT else None)
            assert buffer.obj is array
            assert not buffer.suboffsets
            if flags & ND:
                assert tuple(buffer.shape[: buffer.ndim]) == array.shape
            else:
                assert not buffer.shape
            if flags & STRIDES == STRIDES:
                assert tuple(buffer.strides[: buffer.ndim]) == array.strides
            else:
                assert not buffer.strides
        finally:
            release_buffer(buffer)

    def test_a_format_without_a_shape_is_for_bytes(self, host_type):
        with pytest.raises(BufferError, match="format"):
            get_buffer(zeusm.empty(3, "f4", usm_type=host_type), Buffer(), FORMAT)

    def test_no_dimensions(self, host_type):
        array = zeusm.asarray(7, dtype="int32", usm_type=host_type)
        view = memoryview(array)
        assert (view.ndim, view.shape, view[()]) == (0, (), 7)
        assert np.asarray(array)[()] == 7

    def test_no_elements(self, host_type):
        array = zeusm.empty((2, 0, 3), "f4", usm_type=host_type)
        assert memoryview(array).shape == (2, 0, 3)
        assert np.asarray(array).shape == (2, 0, 3)

    def test_a_buffer_keeps_its_memory(self, host_type):
        view = memoryview(zeusm.asarray(numbers(64), usm_type=host_type))
        others = [zeusm.asarray(np.zeros(64, "i4"), usm_type=host_type) for _ in range(32)]
        assert view.tolist() == numbers(64).tolist()
        del others

    def test_device_memory_refuses(self):
        array = zeusm.empty(3)
        buffer = Buffer()
        for flags in SIMPLE, FULL:
            with pytest.raises(TypeError, match="USM-device"):
                get_buffer(array, buffer, flags)
        assert not buffer.buf
        with pytest.raises(TypeError, match="copy_to_host"):
            np.asarray(array)
        assert not hasattr(array, "__array_interface__")


class TestArrayInterface:
    def test_fields(self, host_type):
        array = zeusm.empty((4, 6), "f4", usm_type=host_type)
        interface = array.__array_interface__
        assert interface["data"] == (array._pointer, False)
        assert (interface["shape"], interface["typestr"]) == ((4, 6), "<f4")
        assert interface["strides"] is None
        assert interface["version"] == 3
        assert array[:, ::-2].__array_interface__["strides"] == (24, -8)

    def test_numpy_reads_it(self, host_type):
        array = zeusm.asarray(numbers((4, 6)), usm_type=host_type)[::-1, 1::2]

        class OnlyThis:
            __array_interface__ = array.__array_interface__

        np.testing.assert_array_equal(np.asarray(OnlyThis()), array.copy_to_host())

    def test_numpy_may_ask_for_a_copy_or_a_type(self, host_type):
        array = zeusm.asarray(numbers(4), usm_type=host_type)
        assert np.array(array, copy=True).ctypes.data != array._pointer
        assert np.asarray(array, dtype="f8").tolist() == [1, 2, 3, 4]
        assert array.__array__().ctypes.data == array._pointer
        assert array.__array__("f8").dtype == np.float64
        assert array.__array__(copy=True).ctypes.data != array._pointer
        with pytest.raises(ValueError, match="copy"):
            array.__array__("f8", copy=False)


class Duck:
    """An object with only the interface, in which some fields are replaced."""

    def __init__(self, array, **fields):
        self.array, self.fields = array, fields

    @property
    def __sycl_usm_array_interface__(self):
        return self.array.__sycl_usm_array_interface__ | self.fields


class TestSyclInterface:
    def test_fields(self, usm_type):
        array = zeusm.empty((4, 6), "f4", usm_type=usm_type)
        interface = array.__sycl_usm_array_interface__
        assert interface["data"] == (array._pointer, False)
        assert (interface["shape"], interface["typestr"]) == ((4, 6), "<f4")
        assert (interface["strides"], interface["offset"]) == (None, 0)
        view = array[1:, ::-2]
        interface = view.__sycl_usm_array_interface__
        assert (interface["strides"], interface["offset"]) == ((6, -2), 11)
        assert interface["data"][0] == array._pointer

    @pytest.mark.parametrize(
        "key", [np.s_[:], np.s_[1:, ::2], np.s_[::-1, 2], np.s_[3, 4], np.s_[:0]]
    )
    def test_there_and_back(self, usm_type, key):
        source = numbers((4, 6))
        array = zeusm.asarray(source, usm_type=usm_type)[key]
        duck = Duck(array)
        back = zeusm.as_usm_array(duck)
        assert (back.shape, back.dtype, back._pointer) == (array.shape, array.dtype, array._pointer)
        assert back.base.reference_obj is duck
        assert type(back.base) is CLASSES[usm_type]
        np.testing.assert_array_equal(back.copy_to_host(), source[key])

    @pytest.mark.parametrize("key", [np.s_[:], np.s_[1:, ::2], np.s_[2], np.s_[:0]])
    def test_dpctls_arrays_take_it(self, usm_type, key):
        source = numbers((4, 6))
        array = zeusm.asarray(source, usm_type=usm_type)[key]
        theirs = tensor.asarray(array)
        assert isinstance(theirs, tensor.usm_ndarray)
        assert (theirs.shape, theirs.dtype, theirs.usm_type) == (array.shape, array.dtype, usm_type)
        if array.size:
            assert theirs._pointer == array._pointer
            assert theirs.strides == array.strides
        memory = dpctl.memory.as_usm_memory(array)
        assert memory.get_usm_type() == usm_type
        if array.size:
            assert memory._pointer == array._pointer

    @pytest.mark.parametrize(
        "key", [np.s_[:], np.s_[1:, ::2], np.s_[::-1, ::-1], np.s_[2], np.s_[:0]]
    )
    def test_dpctls_arrays_are_taken(self, usm_type, key):
        memory = getattr(dpctl.memory, CLASSES[usm_type].__name__)(96)
        memory.copy_from_host(numbers((4, 6)).view("u1").reshape(-1))
        theirs = tensor.usm_ndarray((4, 6), dtype="i4", buffer=memory)[key]
        mine = zeusm.as_usm_array(theirs)
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        assert mine.base.reference_obj is theirs
        assert mine.usm_type == usm_type
        if theirs.size:
            assert mine._pointer == theirs._pointer
        np.testing.assert_array_equal(mine.copy_to_host(), numbers((4, 6))[key])

    def test_read_only_is_kept(self, usm_type):
        array = zeusm.asarray(numbers(4), usm_type=usm_type)
        pointer, _ = array.__sycl_usm_array_interface__["data"]
        frozen = zeusm.as_usm_array(Duck(array, data=(pointer, True)))
        assert frozen.readonly
        assert frozen[::2].readonly
        assert frozen.__sycl_usm_array_interface__["data"] == (pointer, True)
        assert zeusm.as_usm_array(frozen).readonly
        with pytest.raises(ValueError, match="read-only"):
            frozen.copy_from_host(numbers(4))
        if usm_type != "device":
            assert memoryview(frozen).readonly
            assert not np.asarray(frozen).flags.writeable
            with pytest.raises(BufferError, match="read-only"):
                get_buffer(frozen, Buffer(), WRITABLE)
        copy = zeusm.asarray(frozen, copy=True)
        assert not copy.readonly

    @pytest.mark.parametrize(
        "fields",
        [
            {"shape": (2**40,)},
            {"strides": (2,)},
            {"offset": 1},
            {"offset": -1},
            {"typestr": ">f4"},
            {"typestr": "|V4"},
            {"typestr": "<f16"},
            {"shape": (-1,)},
            {"version": 2},
        ],
        ids=str,
    )
    def test_what_is_wrong_is_refused(self, usm_type, fields):
        array = zeusm.empty(4, "f4", usm_type=usm_type)
        with pytest.raises(ValueError, match="malformed"):
            zeusm.as_usm_array(Duck(array, **fields))

    def test_no_interface(self):
        with pytest.raises(ValueError, match="no __sycl_usm_array_interface__"):
            zeusm.as_usm_array(numbers(3))

    def test_from_a_dictionary(self, usm_type):
        array = zeusm.asarray(numbers(6), usm_type=usm_type)
        owned = zeusm.from_sycl_usm_array_interface(array.__sycl_usm_array_interface__, owner=array)
        assert owned.base.reference_obj is array
        alone = zeusm.from_sycl_usm_array_interface(array[::2].__sycl_usm_array_interface__)
        assert alone.base.reference_obj is None
        assert alone.copy_to_host().tolist() == [1, 3, 5]
        with pytest.raises(TypeError):
            zeusm.from_sycl_usm_array_interface(array)

    def test_a_dictionary_keeps_alive_what_is_given_as_its_owner(self, usm_type):
        """The import retains only the given owner: a dictionary refers to memory without owning it."""

        for is_owner in [True, False]:
            array = zeusm.asarray(numbers(6), usm_type=usm_type)
            memory = weakref.ref(array.base)
            desc = array.__sycl_usm_array_interface__
            owner = {"owner": array} if is_owner else {}
            there = zeusm.from_sycl_usm_array_interface(desc, **owner)
            del array, desc, owner
            gc.collect()
            assert (memory() is not None) == is_owner
            if is_owner:
                assert there.copy_to_host().tolist() == list(range(1, 7))
                part = there[2:]
                del there
                gc.collect()
                assert part.copy_to_host().tolist() == list(range(3, 7))
                del part
                gc.collect()
                assert memory() is None

    def test_the_default_context_is_sycls(self, usm_type):
        array = zeusm.empty(3, usm_type=usm_type)
        queue = dpctl.SyclQueue()
        assert array.sycl_context == queue.sycl_context
        assert array.sycl_device == queue.sycl_device
        assert array.sycl_queue.sycl_context == queue.sycl_context


class TestPointerAttributes:
    def test_of_an_allocation(self, usm_type):
        array = zeusm.empty(100, "u1", usm_type=usm_type)
        found = zeusm.pointer_attributes(array._pointer + 40)
        assert (found.pointer, found.base) == (array._pointer + 40, array._pointer)
        assert found.size >= 100
        assert found.usm_type == usm_type
        assert found.host_accessible == (usm_type != "device")
        assert found.sycl_context == array.sycl_context
        assert found.sycl_device == (None if usm_type == "host" else array.sycl_device)
        assert usm_type in repr(found)

    def test_ids_are_of_allocations(self):
        one, other = zeusm.empty(100, "u1"), zeusm.empty(100, "u1")
        found = [zeusm.pointer_attributes(x._pointer + 1) for x in (one, one[50:], other)]
        # The ID is that of the driver's allocation, which may contain several pool blocks; the base identifies the block.
        ids = [(x.allocation_id, x.base) for x in found]
        assert ids[0] == ids[1] != ids[2]

    @pytest.mark.parametrize("what", ["queue", "context", "device", "string", "capsule"])
    def test_a_context_can_be_named(self, what):
        memory = dpctl.memory.MemoryUSMShared(64)
        context = {
            "queue": memory.sycl_queue,
            "context": memory.sycl_context,
            "device": memory.sycl_device,
            "string": memory.sycl_device.filter_string,
            "capsule": memory.sycl_context._get_capsule(),
        }[what]
        found = zeusm.pointer_attributes(memory._pointer, context)
        assert (found.usm_type, found.base) == ("shared", memory._pointer)

    @pytest.mark.parametrize("pointer", [0, 1, 2**64 - 1, id(object), ctypes.addressof(Buffer())])
    def test_other_pointers(self, pointer):
        with pytest.raises(ValueError, match="not a USM allocation"):
            zeusm.pointer_attributes(pointer)
