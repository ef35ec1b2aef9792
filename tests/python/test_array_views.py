"""Views of arrays: indexing, slicing, transposition and reshaping, compared with NumPy."""

import gc
import weakref

import numpy as np
import pytest
import zeusm
import zeusm.memory
from arrays import SHAPES, indices, mirrored, numbers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.once


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
    with np.errstate(over="ignore"):  # The difference of a scalar may wrap.
        new = np.asarray(100 - wanted[key], dtype)
    array[key].transpose(axes).copy_from_host(new.transpose(axes))
    wanted[key] = new
    np.testing.assert_array_equal(array.copy_to_host(), wanted)


@given(
    strides=st.lists(st.integers(-20, 20), min_size=3, max_size=3),
    shape=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
    offset=st.integers(-5, 60),
    usm_type=st.sampled_from(["device", "shared"]),
)
@settings(max_examples=300, deadline=None)
def test_any_strides_are_numpys_or_refused(shape, strides, offset, usm_type):
    host = np.arange(100, dtype="i2")
    memory = zeusm.asarray(host, usm_type=usm_type).base
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
