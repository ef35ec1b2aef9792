"""DLPack's table of C functions: `__dlpack_c_exchange_api__` of the classes."""

import ctypes
import gc
import weakref

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
    IS_PADDED,
    ONEAPI,
    READ_ONLY,
    Device,
    ExchangeApi,
    Exporter,
    Tensor,
    api,
    lost,
)
from tensors import tensor

TABLE = ExchangeApi.of(zeusm.UsmArray)


def raised(call, *arguments):
    """Calls a function that fails."""
    assert call(*arguments) == -1  # ctypes raises the exception before this returns.


def test_each_class_has_the_table():
    for kind in [zeusm.UsmArray, *CLASSES.values()]:
        table = ExchangeApi.of(kind)
        assert (table.major, table.minor, table.previous) == (1, 3, None)


@pytest.mark.parametrize("key", [np.s_[:], np.s_[1:, ::2], np.s_[::-1], np.s_[2, 3], np.s_[:0]])
def test_an_object_is_exported(array, key):
    view = array[key]
    structure, delete = TABLE.exported(view)
    assert (structure.major, structure.minor, structure.flags) == (1, 3, 0)
    described = Tensor()
    assert TABLE.describe(view, described) == 0
    for inner in structure.tensor, described:
        assert (inner.device.type, inner.device.id) == view.__dlpack_device__()
        assert tuple(inner.shape[: inner.ndim]) == view.shape
        if view.size:
            assert inner.data + inner.byte_offset == view._pointer
            assert tuple(inner.strides[: inner.ndim]) == view.strides
    delete()


def test_the_structure_keeps_the_memory(usm_type):
    array = zeusm.asarray(numbers(9), usm_type=usm_type)
    memory = weakref.ref(array.base)
    _structure, delete = TABLE.exported(array)
    del array
    assert not lost(memory)
    delete()
    assert lost(memory)


def test_memory_is_exported_as_bytes(memory_class):
    memory = memory_class(64)
    structure, delete = ExchangeApi.of(memory_class).exported(memory)
    inner = structure.tensor
    assert (inner.data, inner.shape[0], inner.dtype.code) == (memory._pointer, 64, 1)
    delete()
    with pytest.raises(BufferError, match="view"):
        raised(TABLE.describe, memory, Tensor())
    for call, out in (TABLE.from_object, ctypes.c_void_p()), (TABLE.describe, Tensor()):
        with pytest.raises(BufferError, match="int is no array or memory of zeusm"):
            raised(call, 5, out)


def test_a_structure_is_imported(array):
    structure, _ = TABLE.exported(array[1:])
    taken = TABLE.imported(ctypes.addressof(structure))
    assert (taken._pointer, taken.shape) == (array[1:]._pointer, (3, 6))
    memory = weakref.ref(array.base)
    assert not lost(memory)


@pytest.mark.usefixtures("forget_exporters")
def test_the_deleter_is_called_once(array):
    exporter = Exporter(array)
    taken = TABLE.imported(ctypes.addressof(exporter.structure))
    assert exporter.deleted == 0
    del taken
    gc.collect()
    assert exporter.deleted == 1
    wrong = Exporter(array, ndim=-1)
    with pytest.raises(BufferError, match="ndim"):
        raised(TABLE.to_object, ctypes.addressof(wrong.structure), ctypes.c_void_p())
    assert wrong.deleted == 1  # The ownership was given away.


def test_read_only_and_what_dlpack_cannot_describe(array):
    frozen = zeusm.as_usm_array(
        type(
            "Duck",
            (),
            {
                "__sycl_usm_array_interface__": array.__sycl_usm_array_interface__
                | {"data": (array._pointer, True)}
            },
        )()
    )
    structure, delete = TABLE.exported(frozen)
    assert structure.flags == READ_ONLY
    delete()
    records = zeusm.empty(3, [("x", "f4"), ("y", "f4")])
    for call, out in (TABLE.from_object, ctypes.c_void_p()), (TABLE.describe, Tensor()):
        with pytest.raises(BufferError, match="records"):
            raised(call, records, out)
        with pytest.raises(BufferError):
            raised(call, 3, out)


def test_the_work_stream_is_the_queue_of_default_arrays(array):
    stream = TABLE.stream(array.__dlpack_device__())
    capsule = api.PyCapsule_New(stream, b"SyclQueueRef", None)
    assert dpctl.SyclQueue(capsule) == array.sycl_queue
    assert TABLE.stream((CPU, 0)) is None
    with pytest.raises(BufferError, match="no SYCL device 99"):
        raised(TABLE.work_stream, ONEAPI, 99, ctypes.c_void_p())


def test_an_array_elsewhere_is_refused(usm_type):
    device = dpctl.SyclDevice("level_zero:gpu")
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    array = zeusm.empty(3, usm_type=usm_type, queue=queue)
    with pytest.raises(BufferError, match="context"):
        raised(TABLE.from_object, array, ctypes.c_void_p())


def test_work_on_another_queue_is_waited_for(usm_type):
    """A consumer submits to the work stream, which is not ordered after it."""
    dpnp = pytest.importorskip("dpnp")
    device = dpctl.SyclDevice("level_zero:gpu")
    queue = dpctl.SyclQueue(device, property="in_order")
    array = zeusm.asarray(np.zeros(100_000), usm_type=usm_type, queue=queue)
    theirs = dpnp.asarray(tensor.asarray(array))
    for _ in range(20):
        theirs += 1
    _structure, delete = TABLE.exported(array)
    if hasattr(queue, "is_in_order"):
        # SYCL has completed what was submitted to the queue.
        assert queue.submit_barrier().execution_status == dpctl.event_status_type.complete
    delete()


class Errors:
    """What the allocator reports."""

    def __init__(self):
        self.found = []
        self.call = ExchangeApi.set_error(lambda *arguments: self.found.append(arguments))


def prototype(shape, device, code=2, bits=32):
    made = Tensor(device=Device(*device), ndim=len(shape))
    made.dtype.code, made.dtype.bits, made.dtype.lanes = code, bits, 1
    made.shape = (ctypes.c_int64 * len(shape))(*shape)
    return made


@pytest.mark.parametrize(("kind", "usm_type"), [(ONEAPI, "device"), (CPU, "host")])
def test_the_allocator(kind, usm_type):
    out, errors = ctypes.c_void_p(), Errors()
    assert TABLE.allocate(prototype((2, 3), (kind, 0)), out, None, errors.call) == 0
    taken = TABLE.imported(out.value)
    assert (taken.usm_type, taken.shape, taken.dtype) == (usm_type, (2, 3), np.float32)
    assert not errors.found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (prototype((2,), (CUDA, 0)), b"kDLCUDA"),
        (prototype((2,), (ONEAPI, 99)), b"no SYCL device 99"),
        (prototype((-2,), (ONEAPI, 0)), b"negative"),
        (prototype((2,), (ONEAPI, 0), bits=7), b"7 bits"),
        (prototype((1 << 50,), (ONEAPI, 0)), b""),
    ],
)
def test_the_allocators_errors(wrong, message):
    errors = Errors()
    assert TABLE.allocate(wrong, ctypes.c_void_p(), 7, errors.call) == -1
    ((context, kind, text),) = errors.found
    assert context == 7
    assert kind.endswith(b"Error")
    assert message in text


@pytest.mark.parametrize("key", np.s_[:, 1:, :, ::2, ::-1], ids=str)
def test_tvm_ffi(array, key):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    echo = tvm_ffi.get_global_func("testing.echo")
    view = array[key]
    back = echo(view)
    assert isinstance(back, zeusm.UsmArray)
    assert (back._pointer, back.shape, back.strides) == (view._pointer, view.shape, view.strides)
    theirs = tvm_ffi.from_dlpack(view)
    assert (theirs.shape, theirs.strides) == (view.shape, view.strides)
    assert zeusm.from_dlpack(theirs)._pointer == view._pointer


def test_a_type_of_fewer_than_8_bits_needs_the_flag():
    array = zeusm.empty(4, "float4_e2m1fn")
    structure, delete = TABLE.exported(array)
    assert structure.flags == IS_PADDED
    delete()
    with pytest.raises(BufferError, match="versioned"):
        raised(TABLE.describe, array, Tensor())
