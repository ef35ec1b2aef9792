"""UsmArray: views of memory, compared with NumPy's of the same bytes."""

import gc
import weakref

import numpy as np
import pytest
import zeusm
import zeusm.memory
from conftest import CLASSES
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DTYPES = [
    *["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    *["float16", "float32", "float64", "complex64", "complex128"],
]


def numbers(shape, dtype="int32"):
    """Elements of which no two are alike, as far as the type can tell."""
    return np.arange(1, 1 + np.prod(shape, dtype=int)).astype(dtype).reshape(shape)


def mirrored(array, view):
    """Whether a view of a UsmArray is the view of the NumPy array."""
    assert view.shape == array.shape
    assert view.dtype == array.dtype
    if array.size:
        relevant = [axis for axis, size in enumerate(array.shape) if size > 1]
        strides = [array.strides[axis] // array.itemsize for axis in relevant]
        assert [view.strides[axis] for axis in relevant] == strides
    np.testing.assert_array_equal(view.copy_to_host(), array)
    return True


class TestMaking:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_view_has_the_type(self, memory_class, dtype):
        memory = memory_class(64)
        memory.copy_from_host(bytes(range(64)) if dtype != "bool" else bytes([0, 1] * 32))
        array = memory.view(dtype)
        assert array.dtype == np.dtype(dtype)
        assert (array.ndim, array.size) == (1, 64 // np.dtype(dtype).itemsize)
        assert (array.itemsize, array.nbytes) == (np.dtype(dtype).itemsize, 64)
        assert array.copy_to_host().tobytes() == memory.tobytes()
        assert array.base is memory

    @pytest.mark.parametrize(
        "dtype", [np.float32, np.dtype("<f4"), "f4", "f", "<f4", float, int, bool, complex]
    )
    def test_types_are_spelt_as_in_numpy(self, dtype):
        assert zeusm.empty(3, dtype).dtype == np.dtype(dtype)

    @pytest.mark.parametrize(
        "dtype", [">f4", "V8", "S3", "U2", "M8[s]", "longdouble", "O", "i4,f4"]
    )
    def test_other_types_are_refused(self, dtype):
        with pytest.raises(TypeError, match="not supported"):
            zeusm.empty(3, dtype)

    def test_no_type_at_all(self):
        with pytest.raises(TypeError):
            zeusm.empty(3, "float33")

    def test_view_from_an_offset(self, memory_class):
        memory = memory_class(64)
        memory.copy_from_host(bytes(range(64)))
        array = memory.view("uint16", offset=3)
        assert (array.size, array.offset) == (29, 3)
        assert array._pointer == memory._pointer + 6
        assert memory.view("u1", offset=64).size == 0

    @pytest.mark.parametrize(
        ("shape", "strides", "offset"),
        [
            ((16,), None, 0),
            ((2, 3), (8, 2), 1),
            ((4, 4), (-4, -1), 15),
            ((3, 5), (0, 3), 2),
            ((), None, 7),
            ((0, 3), None, 4),
        ],
    )
    def test_view_with_strides(self, memory_class, shape, strides, offset):
        memory = memory_class(64)
        memory.copy_from_host(numbers(16))
        array = memory.view("int32", shape, strides, offset)
        bytes_strides = None if strides is None else [4 * stride for stride in strides]
        wanted = np.ndarray(shape, "int32", memory.tobytes(), 4 * offset, bytes_strides)
        assert mirrored(wanted, array)
        assert array.offset == offset

    @pytest.mark.parametrize(
        ("shape", "strides", "offset"),
        [
            ((17,), None, 0),
            ((16,), None, 1),
            ((16,), None, -1),
            ((2,), (16,), 0),
            ((2,), (-1,), 0),
            ((2**62, 4), None, 0),
            ((2**40,), None, 0),
            ((-1,), None, 0),
            ((2**63,), None, 0),
            ((2,), (2**62,), 0),
            ((2,), (1, 1), 0),
            (None, None, 17),
            (None, None, -1),
        ],
    )
    def test_a_view_outside_of_the_memory_is_refused(self, memory_class, shape, strides, offset):
        with pytest.raises(ValueError, match=r"touches|shape|strides|outside|reach"):
            memory_class(64).view("int32", shape, strides, offset)

    def test_a_view_of_half_elements_is_refused(self):
        with pytest.raises(ValueError, match="whole number"):
            zeusm.memory.MemoryUSMHost(7).view("int16")

    @pytest.mark.parametrize("shape", ["3", 1.5, (1, "2"), (1, 1.5), {"a": 1}])
    def test_shapes_are_integers(self, shape):
        with pytest.raises(TypeError, match="shape"):
            zeusm.empty(shape)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_empty(self, usm_type, order):
        array = zeusm.empty((2, 3, 4), "float32", usm_type=usm_type, order=order)
        wanted = np.empty((2, 3, 4), "float32", order)
        assert array.strides == tuple(stride // 4 for stride in wanted.strides)
        assert (array.c_contiguous, array.f_contiguous) == (order == "C", order == "F")
        assert array.usm_type == usm_type
        assert type(array.base) is CLASSES[usm_type]
        assert not array.readonly

    @pytest.mark.parametrize(
        ("keywords", "message"),
        [
            ({"usm_type": "managed"}, "usm_type"),
            ({"order": "K"}, "order"),
            ({"device": "level_zero:gpu:0", "queue": "level_zero:gpu:0"}, "either"),
        ],
    )
    def test_wrong_keywords(self, keywords, message):
        with pytest.raises((ValueError, TypeError), match=message):
            zeusm.empty(3, **keywords)

    def test_a_place_can_be_named(self, usm_type):
        dpctl = pytest.importorskip("dpctl")
        device = dpctl.SyclDevice("level_zero:gpu")
        context = dpctl.SyclContext([device])  # Of a list a new one is made.
        queue = dpctl.SyclQueue(context, device)
        for name in "device", "queue":
            array = zeusm.empty(3, usm_type=usm_type, **{name: queue})
            assert array.sycl_context == context
            assert array.sycl_device == queue.sycl_device
            assert array.sycl_queue == queue
        source = zeusm.asarray([1, 2, 3], usm_type=usm_type)
        moved = zeusm.asarray(source[::2], queue=queue)
        assert moved.sycl_context == context != source.sycl_context
        assert moved.copy_to_host().tolist() == [1, 3]
        with pytest.raises(ValueError, match="copy is False"):
            zeusm.asarray(source, queue=queue, copy=False)


class TestAsarray:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_of_numpy(self, usm_type, dtype):
        source = numbers((2, 3, 4), dtype)
        array = zeusm.asarray(source, usm_type=usm_type)
        assert array.usm_type == usm_type
        assert mirrored(source, array)
        source[...] = 0
        assert array.copy_to_host().any()

    @pytest.mark.parametrize(
        "key", [np.s_[::2], np.s_[:, ::-1], np.s_[..., 1:], np.s_[::-1, ::-1, ::-1], np.s_[:0]]
    )
    def test_of_strided_numpy(self, usm_type, key):
        source = numbers((4, 3, 4))
        for view in source[key], source.T[key], np.asfortranarray(source)[key]:
            array = zeusm.asarray(view, usm_type=usm_type)
            np.testing.assert_array_equal(array.copy_to_host(), view)
            assert all(stride >= 0 for stride in array.strides)

    def test_order_is_kept_or_made(self, usm_type):
        source = np.asfortranarray(numbers((3, 4)))
        assert zeusm.asarray(source, usm_type=usm_type).f_contiguous
        assert zeusm.asarray(source, usm_type=usm_type, order="C").c_contiguous
        array = zeusm.asarray(numbers((3, 4)), usm_type=usm_type)
        turned = zeusm.asarray(array, order="F")
        assert turned.f_contiguous
        assert turned._pointer != array._pointer
        np.testing.assert_array_equal(turned.copy_to_host(), numbers((3, 4)))

    def test_of_lists_and_scalars(self):
        assert zeusm.asarray([[1.5, 2], [3, 4]]).copy_to_host().tolist() == [[1.5, 2], [3, 4]]
        scalar = zeusm.asarray(7, dtype="uint8")
        assert (scalar.shape, scalar.copy_to_host()[()]) == ((), 7)
        assert zeusm.asarray([]).shape == (0,)
        assert zeusm.asarray([1, 2], "float32").copy_to_host().tolist() == [1.0, 2.0]

    def test_usm_is_taken_as_it_is(self, usm_type):
        array = zeusm.asarray(numbers(6), usm_type=usm_type)
        for taken in zeusm.asarray(array), zeusm.asarray(array, usm_type=usm_type, copy=False):
            assert taken._pointer == array._pointer
        bytes_of_it = zeusm.asarray(array.base)
        assert bytes_of_it.dtype == np.uint8
        assert bytes_of_it._pointer == array._pointer

    def test_usm_of_another_kind_is_copied(self, usm_type):
        array = zeusm.asarray(numbers((3, 4)), usm_type=usm_type)[:, ::2]
        for other in CLASSES:
            copy = zeusm.asarray(array, usm_type=other, copy=True)
            assert copy.usm_type == other
            assert copy._pointer != array._pointer
            assert copy.base.nbytes == array.nbytes
            np.testing.assert_array_equal(copy.copy_to_host(), numbers((3, 4))[:, ::2])
            if other != usm_type:
                with pytest.raises(ValueError, match="copy"):
                    zeusm.asarray(array, usm_type=other, copy=False)

    def test_usm_is_not_converted(self):
        with pytest.raises(TypeError, match="computing"):
            zeusm.asarray(zeusm.empty(3, "int32"), dtype="int64")

    def test_host_data_needs_a_copy(self):
        with pytest.raises(ValueError, match="copy"):
            zeusm.asarray([1, 2], copy=False)


class TestCopies:
    KEYS = (
        np.s_[:],
        np.s_[1],
        np.s_[::2],
        np.s_[:, 1:],
        np.s_[..., ::3],
        np.s_[:, ::-1, 1],
        np.s_[::-2, :, ::-1],
        np.s_[1:1],
        np.s_[0, 0, 0],
        np.s_[:, None, 2:, ...],
    )

    @pytest.mark.parametrize("key", KEYS, ids=str)
    @pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
    def test_from_host_touches_only_the_elements(self, usm_type, key, dtype):
        wanted = numbers((4, 5, 6), dtype)
        array = zeusm.asarray(wanted, usm_type=usm_type)
        new = np.asarray(255 - wanted[key], dtype)
        array[key].copy_from_host(new)
        wanted[key] = new
        np.testing.assert_array_equal(array.copy_to_host(), wanted)
        array.T[...].copy_from_host(wanted.T * 2)
        np.testing.assert_array_equal(array.copy_to_host(), wanted * 2)

    @pytest.mark.parametrize("key", KEYS, ids=str)
    def test_to_host(self, usm_type, key):
        source = numbers((4, 5, 6), "float32")
        array = zeusm.asarray(source, usm_type=usm_type)[key]
        copy = array.copy_to_host()
        np.testing.assert_array_equal(copy, source[key])
        assert copy.flags.writeable
        assert all(stride >= 0 for stride in copy.strides)
        target = np.zeros([2 * size for size in copy.shape], "float32")
        every_second = target[tuple(slice(None, None, 2) for _ in copy.shape)]
        if copy.ndim:
            assert array.copy_to_host(every_second) is every_second
            np.testing.assert_array_equal(every_second, source[key])
            assert target.sum() == every_second.sum()

    def test_fortran_order_is_one_copy_away(self, usm_type):
        array = zeusm.asarray(numbers((3, 4)), usm_type=usm_type).T
        target = np.empty((4, 3), "int32", order="F")
        array.copy_to_host(target)
        np.testing.assert_array_equal(target, numbers((3, 4)).T)
        array.copy_from_host(np.asfortranarray(target + 1))
        np.testing.assert_array_equal(array.T.copy_to_host(), numbers((3, 4)) + 1)

    def test_anything_with_a_buffer_is_a_destination(self, usm_type):
        array = zeusm.asarray(numbers(4, "uint8"), usm_type=usm_type)
        target = bytearray(4)
        assert array.copy_to_host(target) is target
        assert target == bytes([1, 2, 3, 4])

    def test_wrong_destinations(self, usm_type):
        array = zeusm.asarray(numbers((2, 3)), usm_type=usm_type)
        with pytest.raises(ValueError, match="shape"):
            array.copy_to_host(np.empty((3, 2), "int32"))
        with pytest.raises(ValueError, match="convert"):
            array.copy_to_host(np.empty((2, 3), "float32"))
        with pytest.raises(TypeError):
            array.copy_to_host([[0] * 3] * 2)
        frozen = np.zeros((2, 3), "int32")
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            array.copy_to_host(frozen)
        assert not frozen.any()

    def test_wrong_sources(self, usm_type):
        array = zeusm.asarray(numbers((2, 3)), usm_type=usm_type)
        for source in np.zeros((3, 2), "int32"), np.zeros((2, 3)), [[0, 0, 0]], 0:
            with pytest.raises(ValueError, match=r"shape|convert"):
                array.copy_from_host(source)
        repeated = array.base.view("int32", (2, 2), (0, 1))
        with pytest.raises(ValueError, match="repeats"):
            repeated.copy_from_host(np.zeros((2, 2), "int32"))
        np.testing.assert_array_equal(array.copy_to_host(), numbers((2, 3)))

    def test_overlapping_windows_are_read(self, usm_type):
        memory = zeusm.asarray(numbers(10), usm_type=usm_type).base
        windows = memory.view("int32", (4, 3, 3), (1, 2, 1))
        wanted = np.lib.stride_tricks.as_strided(numbers(10), (4, 3, 3), (4, 8, 4))
        np.testing.assert_array_equal(windows.copy_to_host(), wanted)

    def test_memory_objects_take_arrays(self, usm_type):
        array = zeusm.asarray(numbers(8), usm_type=usm_type)
        memory = zeusm.memory.MemoryUSMHost(16)
        memory.copy_from_device(array[2:6])
        assert memory.tobytes() == numbers(8)[2:6].tobytes()
        taken = zeusm.memory.as_usm_memory(array[1:3])
        assert (taken._pointer, taken.nbytes) == (array._pointer + 4, 8)


class TestViews:
    def test_elements_are_views_too(self, host_class):
        array = host_class(16).view("int32")
        np.asarray(array)[:] = [5, 6, 7, 8]
        assert array[2].shape == ()
        assert array[-1].copy_to_host()[()] == 8
        assert [int(x.copy_to_host()) for x in array] == [5, 6, 7, 8]

    @pytest.mark.parametrize(
        "key", [4, -5, 2**70, (0, 0), "a", 1.5, [0, 1], True, np.array([0, 1])]
    )
    def test_wrong_indices(self, key):
        with pytest.raises(IndexError):
            zeusm.empty(4)[key]

    def test_two_ellipses(self):
        with pytest.raises(IndexError, match="Ellipsis"):
            zeusm.empty((2, 3))[..., ...]

    def test_a_step_of_zero(self):
        with pytest.raises(ValueError, match="zero"):
            zeusm.empty(4)[::0]

    def test_huge_slices(self):
        array = zeusm.asarray(numbers(5))
        assert array[-(2**70) : 2**70 : 2**60].shape == (1,)
        assert array[:: -(2**62)].copy_to_host().tolist() == [5]

    def test_transpose(self, usm_type):
        source = numbers((2, 3, 4))
        array = zeusm.asarray(source, usm_type=usm_type)
        assert mirrored(source.T, array.T)
        assert mirrored(source.transpose(), array.transpose())
        assert mirrored(source.transpose(None), array.transpose(None))
        assert mirrored(source.transpose(1, 0, 2), array.transpose(1, 0, 2))
        assert mirrored(source.transpose((2, -3, 1)), array.transpose((2, -3, 1)))
        for axes in (0, 1), (0, 1, 1), (0, 1, 3), (0, 1, 2**70):
            with pytest.raises(ValueError, match="axes"):
                array.transpose(axes)

    def test_reshape(self, usm_type):
        source = numbers((2, 3, 4))
        array = zeusm.asarray(source, usm_type=usm_type)
        assert mirrored(source.reshape(6, 4), array.reshape(6, 4))
        assert mirrored(source.reshape(-1), array.reshape(-1))
        assert mirrored(source.reshape((4, -1)), array.reshape((4, -1)))
        assert mirrored(source.reshape((6, 4), order="F"), array.reshape((6, 4), order="F"))
        assert array.reshape(24)._pointer == array._pointer
        assert array.reshape(24, copy=False)._pointer == array._pointer
        assert array.reshape(24, copy=True)._pointer != array._pointer
        for shape in (5,), (-1, -1), (7, -1), (-2, -12):
            with pytest.raises(ValueError, match="shape"):
                array.reshape(shape)

    def test_reshape_copies_where_it_must(self, usm_type):
        source = numbers((2, 3, 4))
        array = zeusm.asarray(source, usm_type=usm_type)
        with pytest.raises(ValueError, match="copy"):
            array.T.reshape(24, copy=False)
        flat = array.T.reshape(24)
        assert mirrored(source.T.reshape(24), flat)
        assert (flat.usm_type, flat.sycl_context) == (usm_type, array.sycl_context)
        backwards = array[::-1, ::-1, ::-1]
        assert mirrored(source[::-1, ::-1, ::-1].reshape(4, 6), backwards.reshape(4, 6))

    def test_len_and_repr(self, usm_type):
        array = zeusm.empty((3, 2), "complex64", usm_type=usm_type)
        assert len(array) == 3
        with pytest.raises(TypeError, match="no dimensions"):
            len(array[0, 0])
        for part in "(3, 2)", "complex64", usm_type:
            assert part in repr(array)

    def test_views_keep_the_memory(self, usm_type):
        array = zeusm.asarray(numbers(8), usm_type=usm_type)
        memory = weakref.ref(array.base)
        view = array[2:]
        del array
        gc.collect()
        others = [zeusm.asarray(np.zeros(8, "int32"), usm_type=usm_type) for _ in range(32)]
        assert view.copy_to_host().tolist() == [3, 4, 5, 6, 7, 8]
        assert view.base is memory()
        del view, others
        gc.collect()
        assert memory() is None


class TestNothing:
    """Arrays without elements."""

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)])
    def test_everywhere(self, usm_type, shape):
        array = zeusm.empty(shape, "float32", usm_type=usm_type)
        assert (array.shape, array.size, array.nbytes) == (shape, 0, 0)
        assert array.copy_to_host().shape == shape
        array.copy_from_host(np.empty(shape, "float32"))
        assert array.T.shape == shape[::-1]
        assert array.reshape(0, 5).shape == (0, 5)
        assert array.reshape(0, copy=True).shape == (0,)
        assert array[..., :0].size == 0
        assert zeusm.asarray(array, usm_type="host", copy=True).shape == shape
        assert zeusm.asarray(np.empty(shape), usm_type=usm_type).shape == shape
        assert zeusm.as_usm_array(array).shape == shape
        assert array.c_contiguous
        assert array.f_contiguous

    def test_in_memory_of_no_bytes(self, memory_class):
        array = memory_class(0).view("float64")
        assert array.shape == (0,)
        assert array.copy_to_host().shape == (0,)
        with pytest.raises(ValueError, match="touches"):
            memory_class(0).view("u1", (1,))


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def indices(shape):
    return hnp.basic_indices(shape, max_dims=6, allow_newaxis=True, allow_ellipsis=True)


@given(data=st.data(), shape=SHAPES, kind=st.sampled_from(["device", "shared"]))
@settings(max_examples=200, deadline=None)
def test_any_chain_of_views_is_numpys(data, shape, kind):
    wanted = numbers(shape)
    array = zeusm.asarray(wanted, usm_type=kind)
    for _ in range(3):
        step = data.draw(st.sampled_from(["index", "transpose", "reshape"]))
        if step == "index":
            key = data.draw(indices(wanted.shape))
            wanted, array = wanted[key], array[key]
            if not isinstance(wanted, np.ndarray):
                wanted = np.asarray(wanted)
        elif step == "transpose":
            axes = data.draw(st.permutations(range(wanted.ndim)))
            wanted, array = wanted.transpose(axes), array.transpose(axes)
        else:
            shape = data.draw(st.sampled_from([(-1,), (*wanted.shape[::-1],), (1, *wanted.shape)]))
            assume(wanted.size or -1 not in shape)
            order = data.draw(st.sampled_from("CF"))
            reshaped = wanted.reshape(shape, order=order)
            view = array.reshape(shape, order=order)
            if wanted.size:
                assert np.may_share_memory(reshaped, wanted) == (view.base is array.base)
            wanted, array = reshaped, view
        assert array.shape == wanted.shape
        np.testing.assert_array_equal(array.copy_to_host(), wanted)


@given(data=st.data(), shape=SHAPES, dtype=st.sampled_from(["u1", "i2", "f4", "c16"]))
@settings(max_examples=200, deadline=None)
def test_writing_to_any_view_leaves_the_rest(data, shape, dtype):
    wanted = numbers(shape, dtype)
    array = zeusm.asarray(wanted)
    key = data.draw(indices(shape))
    axes = data.draw(st.permutations(range(wanted[key].ndim)))
    new = np.asarray(100 - wanted[key], dtype).transpose(axes)
    array[key].transpose(axes).copy_from_host(new)
    wanted[key] = 100 - wanted[key]
    np.testing.assert_array_equal(array.copy_to_host(), wanted)


@given(
    strides=st.lists(st.integers(-20, 20), min_size=3, max_size=3),
    shape=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
    offset=st.integers(-5, 60),
)
@settings(max_examples=300, deadline=None)
def test_any_strides_are_numpys_or_refused(shape, strides, offset):
    host = np.arange(100, dtype="i2")
    memory = zeusm.asarray(host).base
    reach = [stride * (size - 1) for stride, size in zip(strides, shape, strict=True)]
    low = offset + sum(min(step, 0) for step in reach)
    high = offset + sum(max(step, 0) for step in reach)
    if 0 not in shape and (low < 0 or high >= 100):
        with pytest.raises(ValueError, match="touches"):
            memory.view("i2", shape, strides, offset)
        return
    array = memory.view("i2", shape, strides, offset)
    if 0 in shape:
        assert array.copy_to_host().shape == shape
        return
    wanted = np.ndarray(shape, "i2", host, 2 * offset, [2 * stride for stride in strides])
    np.testing.assert_array_equal(array.copy_to_host(), wanted)
