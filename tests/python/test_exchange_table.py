"""Each row of the table in docs/exchange.md: whether the call copies, and the queue of its result."""

import array_api_compat as compat
import array_api_strict as strict
import dpctl
import dpctl.memory
import dpnp
import numpy as np
import pytest
import zeusm
import zeusm.memory

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


def test_tensor_asarray_is_a_view_on_the_arrays_queue(array, layout):
    if layout == "negative":
        with pytest.raises(ValueError, match="accommodate"):
            tensor.asarray(array)
        return
    for result in tensor.asarray(array), tensor.asarray(array, copy=False):
        assert holds(array, result)
        assert pointer(result) == array._pointer
        assert result.sycl_queue == array.sycl_queue


def test_dpnp_asarray_of_tensor_asarray_is_a_view_on_the_arrays_queue(array_elsewhere):
    result = dpnp.asarray(tensor.asarray(array_elsewhere))
    assert pointer(result) == array_elsewhere._pointer
    assert result.sycl_queue == array_elsewhere.sycl_queue


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


def imported_by_context(queue):
    """An array whose exporter gave its context only, so that it has no queue of its own."""
    source = zeusm.asarray(np.arange(3, dtype="f4"), queue=queue)
    desc = source.base.__sycl_usm_array_interface__
    return zeusm.from_sycl_usm_array_interface(desc, owner=source)


class TestQueue:
    """The queue that an array gives to other packages."""

    def test_of_an_array_made_on_a_queue(self):
        queue = dpctl.SyclQueue()
        array = zeusm.empty(3, "f4", queue=queue)
        capsule = array.__sycl_usm_array_interface__["syclobj"]
        assert dpctl.SyclQueue(capsule) == queue == array.sycl_queue
        assert queue != shared_queue(array)

    def test_of_an_array_without_a_queue_is_the_shared_one(self):
        for queue in None, other_context():
            array = imported_by_context(queue)
            expected = shared_queue(array)
            capsule = array.__sycl_usm_array_interface__["syclobj"]
            assert dpctl.SyclQueue(capsule) == expected == array.sycl_queue

    def test_each_read_makes_a_new_capsule(self, array):
        first, second = (array.__sycl_usm_array_interface__["syclobj"] for _ in range(2))
        assert dpctl.SyclQueue(first) == dpctl.SyclQueue(second)
        with pytest.raises(ValueError, match="used_SyclQueueRef|SyclQueueRef"):
            zeusm.as_usm_array(Exporter(array, first))

    def test_of_an_array_imported_by_a_queue_capsule(self):
        queue = dpctl.SyclQueue()
        array = zeusm.asarray(np.arange(3, dtype="f4"), queue=queue)
        for _ in range(3):
            desc = array.__sycl_usm_array_interface__
            again = zeusm.from_sycl_usm_array_interface(desc, owner=array)
            assert again.sycl_queue == queue
            assert zeusm.memory.as_usm_memory(array).sycl_queue == queue

    def test_of_a_capsule_is_waited_for(self):
        queue = dpctl.SyclQueue()
        array = zeusm.asarray(np.zeros(1 << 22, "f4"), usm_type="shared", queue=queue)
        again = zeusm.as_usm_array(Exporter(array, array.__sycl_usm_array_interface__["syclobj"]))
        for value in range(1, 9):
            tensor.asarray(array)[...] = value
            assert (again.copy_to_host() == value).all()


class Exporter:
    def __init__(self, array, syclobj):
        self.__sycl_usm_array_interface__ = array.__sycl_usm_array_interface__ | {
            "syclobj": syclobj
        }


QUEUES = {"shared": lambda: None, "own": dpctl.SyclQueue, "elsewhere": other_context}


class TestTwoOperands:
    """The operands of one computation have to be on one queue."""

    @pytest.fixture(params=QUEUES)
    def queue(self, request):
        return QUEUES[request.param]()

    @pytest.fixture
    def array(self, usm_type, queue):
        return zeusm.asarray(np.arange(3, dtype="f4"), usm_type=usm_type, queue=queue)

    def test_with_an_array_of_the_peer(self, array, queue):
        ones = tensor.ones(3, dtype="f4", sycl_queue=queue)
        result = tensor.asarray(array) + ones
        assert tensor.asnumpy(result).tolist() == [1, 2, 3]
        dpnp_ones = dpnp.ones(3, dtype="f4", sycl_queue=queue)
        for view in dpnp.asarray(array), dpnp.asarray(tensor.asarray(array)):
            assert dpnp.asnumpy(view + dpnp_ones).tolist() == [1, 2, 3]

    def test_both_of_zeusm(self, array, queue):
        other = zeusm.asarray(np.ones(3, "f4"), usm_type="shared", queue=queue)
        result = tensor.asarray(array) * 2 + tensor.asarray(other)
        assert tensor.asnumpy(result).tolist() == [1, 3, 5]

    def test_as_the_output(self, array, queue):
        ones = tensor.ones(3, dtype="f4", sycl_queue=queue)
        tensor.add(ones, ones, out=tensor.asarray(array))
        assert array.copy_to_host().tolist() == [2, 2, 2]  # Waits for the queue.

    def test_by_dlpack_in_the_shared_queue(self, usm_type):
        """DLPack has no queue, so a view of an array on another queue needs one that is on the shared queue."""
        array = zeusm.asarray(np.arange(3, dtype="f4"), usm_type=usm_type, queue=dpctl.SyclQueue())
        result = dpnp.from_dlpack(array) + dpnp.ones(3, dtype="f4")
        assert dpnp.asnumpy(result).tolist() == [1, 2, 3]

    def test_memory_gives_its_queue_through_a_view(self, usm_type, queue):
        bytes_of = zeusm.asarray(np.arange(3, dtype="f4"), usm_type=usm_type, queue=queue).base
        one, two = (
            tensor.usm_ndarray(3, "f4", buffer=dpctl.memory.as_usm_memory(bytes_of.view("u1")))
            for _ in range(2)
        )
        assert one.sycl_queue == bytes_of.sycl_queue
        assert tensor.asnumpy(one + two).tolist() == [0, 2, 4]

    def test_assigned_to_an_array_of_the_peer(self, array, queue):
        for package in dpnp, tensor:
            target = package.zeros(3, dtype="f4", sycl_queue=queue)
            target[...] = array
            assert package.asnumpy(target).tolist() == [0, 1, 2]

    def test_dpnp_functions_refuse_the_array_itself(self, array, queue):
        ones = dpnp.ones(3, dtype="f4", sycl_queue=queue)
        for compute in lambda: dpnp.add(array, ones), lambda: ones + array, lambda: array + ones:
            with pytest.raises(TypeError):
                compute()

    def test_tensor_functions_take_what_the_host_can_access(self, array, queue, usm_type):
        ones = tensor.ones(3, dtype="f4", sycl_queue=queue)
        for compute in lambda: tensor.add(ones, array), lambda: array + ones:
            if usm_type == "device":
                with pytest.raises(TypeError, match="copy_to_host"):
                    compute()
            else:
                assert tensor.asnumpy(compute()).tolist() == [1, 2, 3]


def test_array_api_packages_need_a_conversion(array):
    """The call to write is `copy_to_host`."""
    assert not compat.is_array_api_obj(array)
    with pytest.raises(RuntimeError, match="device"):
        strict.from_dlpack(array)
    host = array.copy_to_host()
    assert strict.from_dlpack(host).shape == array.shape
    assert compat.array_namespace(host) is not None
    assert compat.array_namespace(tensor.from_dlpack(array)) is not None
