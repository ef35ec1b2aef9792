"""DLPack with NumPy, dpctl and dpnp."""

import weakref

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory
from arrays import DTYPES, indices, numbers
from conftest import CLASSES
from dlpack_abi import CPU, NUMPY_2, Producer, lost
from hypothesis import given, settings
from hypothesis import strategies as st
from tensors import tensor


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
        else:  # NumPy 1 cannot export read-only tensors.
            with pytest.raises(BufferError, match="readonly"):
                zeusm.from_dlpack(source)

    def test_usm_behind_a_numpy_view_is_imported_in_place(self, host_class):
        array = host_class(64).view("int32")
        back = zeusm.from_dlpack(np.asarray(array)[::2], copy=False)
        assert (back._pointer, back.strides) == (array._pointer, (2,))
        assert back.usm_type == array.usm_type

    @pytest.mark.skipif(not NUMPY_2, reason="NumPy 1 cannot request the host device")
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
        host = np.from_dlpack(Producer(capsules.pop, (CPU, 0)))
        reference = weakref.ref(memory)
        del memory
        assert not lost(reference)
        assert (host == 7).all()
        del host
        assert lost(reference)


class TestPeers:
    """DLPack with dpctl.tensor or dpnp.tensor, and with dpnp."""

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

        sys.modules["dpctl"] = None  # Simulates an environment without dpctl.
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
    dpctl.__version__ < "0.19", reason="dpnp 0.15 imports DLPack tensors of dpctl's arrays only"
)
def test_wide_numbers_without_a_compiler(fresh):
    """dpnp queries the device's support of float64 before it imports an array of it."""
    program = """
    import zeusm
    import dpnp
    for dtype in ("float64", "complex128", "float16"):
        assert dpnp.from_dlpack(zeusm.empty(10, dtype=dtype)).dtype == dtype
    """
    fresh(program, env={"ZEUSM_OPENCL_LIBRARY": "/there/is/none.so"})
