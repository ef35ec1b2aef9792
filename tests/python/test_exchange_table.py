"""Each row of the table in docs/exchange.md: whether the call copies, and the queue of its result."""

import dpctl
import dpctl.memory
import dpnp
import numpy as np
import pytest
import zeusm

try:
    import dpnp.tensor as tensor

    HAS_DPNP_TENSOR = True
except ImportError:  # dpctl provided the array before dpnp 0.19.
    import dpctl.tensor as tensor

    HAS_DPNP_TENSOR = False

LAYOUTS = {
    "C": np.s_[:],
    "offset": np.s_[1:],
    "strided": np.s_[:, ::2],
    "negative": np.s_[:, ::-1],
}


def other_context():
    device = dpctl.SyclDevice("level_zero:gpu")
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


def shared_queue(array):
    return dpctl.get_device_cached_queue((array.sycl_context, array.sycl_device))


def by_buffer(array):
    return tensor.usm_ndarray(
        array.shape,
        dtype=array.dtype,
        strides=array.strides,
        buffer=dpctl.memory.as_usm_memory(array.base),
        offset=array.offset,
    )


def dpnp_by_buffer(array):
    """The strides of dpnp arrays are in bytes, as NumPy's; the offset is in elements."""
    return dpnp.ndarray(
        array.shape,
        dtype=array.dtype,
        strides=[step * array.itemsize for step in array.strides],
        buffer=dpctl.memory.as_usm_memory(array.base),
        offset=array.offset,
    )


def pointer(result):
    return getattr(result, "get_array", lambda: result)()._pointer


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture
def array(usm_type, layout):
    source = np.arange(12, dtype="f4").reshape(3, 4)
    return zeusm.asarray(source, usm_type=usm_type)[LAYOUTS[layout]]


@pytest.fixture
def array_elsewhere(usm_type):
    """An array in a new context."""
    source = np.arange(12, dtype="f4").reshape(3, 4)
    return zeusm.asarray(source, usm_type=usm_type, queue=other_context())


def holds(array, result):
    """The result is an array of the same kind, context and numbers."""
    assert result.usm_type == array.usm_type
    assert result.sycl_queue.sycl_context == array.sycl_context
    np.testing.assert_array_equal(
        (dpnp if isinstance(result, dpnp.ndarray) else tensor).asnumpy(result),
        array.copy_to_host(),
    )
    return True


@pytest.mark.parametrize("package", [dpnp, tensor], ids=["dpnp", "tensor"])
def test_from_dlpack_is_a_view_on_the_shared_queue(array, package):
    result = package.from_dlpack(array)
    assert holds(array, result)
    assert pointer(result) == array._pointer
    assert result.sycl_queue == shared_queue(array)


@pytest.mark.parametrize("package", [dpnp, tensor], ids=["dpnp", "tensor"])
def test_from_dlpack_of_another_context_is_refused(array_elsewhere, package):
    with pytest.raises(BufferError, match="context"):
        package.from_dlpack(array_elsewhere)


def test_usm_ndarray_of_a_buffer_is_a_view_on_a_queue_of_its_own(array):
    result = by_buffer(array)
    assert holds(array, result)
    assert pointer(result) == array._pointer
    assert result.sycl_queue != by_buffer(array).sycl_queue


def test_to_device_of_the_queue_keeps_the_view(array, array_elsewhere):
    for one in array, array_elsewhere:
        result = by_buffer(one).to_device(shared_queue(one))
        assert holds(one, result)
        assert pointer(result) == one._pointer
        assert result.sycl_queue == shared_queue(one)


def test_to_device_of_the_device_copies_only_from_another_context(array, array_elsewhere):
    result = by_buffer(array).to_device(array.sycl_device)
    assert pointer(result) == array._pointer
    assert result.sycl_queue == shared_queue(array)
    moved = by_buffer(array_elsewhere).to_device(array_elsewhere.sycl_device)
    assert pointer(moved) != array_elsewhere._pointer
    assert moved.sycl_queue.sycl_context != array_elsewhere.sycl_context


def test_usm_ndarray_wants_memory_of_dpctl(array):
    for buffer in array, array.base:
        with pytest.raises(ValueError, match="not understood"):
            tensor.usm_ndarray(array.shape, dtype=array.dtype, buffer=buffer)


@pytest.mark.skipif(not HAS_DPNP_TENSOR, reason="dpnp.ndarray accepts memory from dpnp 0.19 on")
def test_dpnp_ndarray_of_a_buffer_is_a_view_on_a_queue_of_its_own(array):
    result = dpnp_by_buffer(array)
    assert holds(array, result)
    assert pointer(result) == array._pointer
    assert result.sycl_queue != dpnp_by_buffer(array).sycl_queue


def test_tensor_asarray_is_a_view_on_a_queue_of_its_own(array, layout):
    if layout == "negative":
        with pytest.raises(ValueError, match="accommodate"):
            tensor.asarray(array)
        return
    for result in tensor.asarray(array), tensor.asarray(array, copy=False):
        assert holds(array, result)
        assert pointer(result) == array._pointer
        assert result.sycl_queue != tensor.asarray(array).sycl_queue


@pytest.mark.parametrize("make", [dpnp.asarray, dpnp.array], ids=["asarray", "array"])
def test_dpnp_asarray_copies(array, layout, make):
    if layout == "negative":
        with pytest.raises(ValueError, match="accommodate"):
            make(array)
        return
    result = make(array)
    assert holds(array, result)
    assert pointer(result) != array._pointer
    assert result.sycl_queue == array.sycl_queue


@pytest.mark.parametrize("make", [dpnp.asarray, tensor.asarray], ids=["dpnp", "tensor"])
def test_asarray_with_a_place_copies(array, layout, make):
    if layout == "negative":
        with pytest.raises(ValueError, match="accommodate"):
            make(array, device=array.sycl_device)
        return
    for place in {"device": array.sycl_device}, {"sycl_queue": shared_queue(array)}:
        result = make(array, **place)
        assert holds(array, result)
        assert pointer(result) != array._pointer
        assert result.sycl_queue == shared_queue(array)


def test_numpy_asarray_is_a_view_of_what_the_host_sees(array, usm_type):
    if usm_type == "device":
        with pytest.raises(TypeError, match="copy_to_host"):
            np.asarray(array)
        return
    assert np.asarray(array).ctypes.data == array._pointer


def test_zeusm_takes_them_back_without_a_copy(array):
    for result in dpnp.from_dlpack(array), by_buffer(array):
        assert zeusm.as_usm_array(result)._pointer == array._pointer
        assert zeusm.from_dlpack(result)._pointer == array._pointer
        assert zeusm.asarray(result)._pointer == array._pointer
