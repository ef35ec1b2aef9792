"""Arrow's capsules, in both directions, with pyarrow and nanoarrow."""

import gc
import weakref

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm

pytestmark = pytest.mark.once

REASON = "pyarrow and nanoarrow are in .venv only"
pa = pytest.importorskip("pyarrow", reason=REASON)
na = pytest.importorskip("nanoarrow", reason=REASON)
nanoarrow_device = pytest.importorskip("nanoarrow.device", reason=REASON)

VALUES = np.arange(5, dtype="f4")
NAMES = [f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)]
NAMES += ["float16", "float32", "float64"]


def of_pyarrow(array):
    return pa.Array._import_from_c_capsule(*array.__arrow_c_array__())


# --- export --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["host", "shared"])
@pytest.mark.parametrize("name", NAMES)
def test_memory_of_the_host_is_exported_in_place(kind, name):
    array = zeusm.asarray(np.arange(7).astype(name), usm_type=kind)[2:]
    for taken in of_pyarrow(array), pa.array(array):
        assert taken.buffers()[1].address == array._pointer
        assert taken.type == pa.from_numpy_dtype(name)
        assert (taken.null_count, taken.to_numpy().tolist()) == (0, [2, 3, 4, 5, 6])
        taken.validate(full=True)
    small = na.c_array(array)
    assert small.buffers[1] == array._pointer
    assert na.Array(small).to_pylist() == [2, 3, 4, 5, 6]


def test_the_device_variant_has_the_device(usm_type):
    array = zeusm.asarray(VALUES, usm_type=usm_type)
    taken = nanoarrow_device.c_device_array(array)
    is_device = usm_type == "device"
    kind = na.device.DeviceType.ONEAPI if is_device else na.device.DeviceType.CPU
    number = array.__dlpack_device__()[1] if is_device else -1
    assert (taken.device_type, taken.device_id) == (kind, number)
    assert taken.array.buffers[1] == array._pointer


def test_device_memory_is_no_memory_of_the_host():
    array = zeusm.asarray(VALUES)
    for take in of_pyarrow, pa.array, na.c_array:
        with pytest.raises(TypeError, match="copy_to_host"):
            take(array)


@pytest.mark.parametrize("key", np.s_[::2, ::-1], ids=str)
def test_strided_elements_are_copied(key):
    array = zeusm.asarray(VALUES, usm_type="shared")[key]
    assert of_pyarrow(array).to_pylist() == VALUES[key].tolist()
    field = zeusm.asarray(np.ones(3, [("x", "i1"), ("y", "f8")]), usm_type="host")["y"]
    assert of_pyarrow(field).to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_what_one_writes_the_other_reads(kind):
    array = zeusm.asarray(VALUES, usm_type=kind)
    taken = of_pyarrow(array)
    array[0] = 9
    assert taken.to_pylist() == [9, 1, 2, 3, 4]


def test_an_export_waits_for_the_work_on_the_array(busy, large):
    end = busy()
    nanoarrow_device.c_device_array(large.view("u1"))
    assert end.is_complete


def test_a_consumer_keeps_the_memory_until_it_releases_it():
    array = zeusm.asarray(VALUES, usm_type="shared")
    alive = weakref.ref(array)
    taken, capsules = of_pyarrow(array), array.__arrow_c_array__()
    del array, capsules
    gc.collect()
    assert alive() is not None
    assert taken.to_pylist() == VALUES.tolist()
    del taken
    gc.collect()
    assert alive() is None


def test_what_arrow_cannot_describe_is_refused():
    def refused(error, match, *array):
        array = zeusm.asarray(*array, usm_type="shared")
        for export in array.__arrow_c_array__, array.__arrow_c_device_array__:
            with pytest.raises(error, match=match):
                export()

    refused(ValueError, "one dimension", np.eye(2))
    refused(ValueError, "0 dimensions", 3.0)
    refused(TypeError, "copy_to_host", [True])
    refused(TypeError, "copy_to_host", [1j])
    refused(TypeError, "copy_to_host", zeusm.empty(3, "bfloat16"))
    refused(TypeError, "no records", np.zeros(3, [("x", "f4")]))
    array = zeusm.asarray(VALUES, usm_type="host")
    with pytest.raises(NotImplementedError, match="later"):
        array.__arrow_c_device_array__(later=1)
    assert array.__arrow_c_device_array__(None, later=None)


def test_the_schema_alone():
    array = zeusm.asarray(VALUES)
    assert na.Schema(array).type == na.Type.FLOAT


# --- import --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_usm_comes_back_in_place_and_read_only(kind):
    array = zeusm.asarray(VALUES, usm_type=kind)
    for taken in of_pyarrow(array), na.Array(array), na.c_array(array):
        back = zeusm.from_arrow(taken, copy=False)
        assert (back._pointer, back.usm_type, back.readonly) == (array._pointer, kind, True)
    back = zeusm.from_arrow(of_pyarrow(array)[2:4], copy=False)
    assert back._pointer - array._pointer == 8
    assert back.copy_to_host().tolist() == [2, 3]
    copy = zeusm.from_arrow(of_pyarrow(array), copy=True)
    assert copy._pointer != array._pointer
    assert not copy.readonly


def test_device_memory_comes_back_in_place():
    array = zeusm.asarray(VALUES)
    for taken in array, nanoarrow_device.c_device_array(array):
        back = zeusm.from_arrow(taken)
        assert (back._pointer, back.usm_type) == (array._pointer, "device")


def test_buffers_of_zeusm_in_arrays_of_pyarrow():
    memory = zm.MemoryUSMHost(40)
    memory.memset(0)
    array = pa.Array.from_buffers(pa.int64(), 5, [None, pa.py_buffer(memory)])
    assert zeusm.from_arrow(array, copy=False)._pointer == memory._pointer


@pytest.mark.parametrize("name", NAMES)
def test_other_memory_of_the_host_is_copied(name):
    theirs = pa.array(np.arange(7).astype(name))[2:]
    array = zeusm.from_arrow(theirs)
    assert (array.usm_type, array.dtype, array.readonly) == ("device", name, False)
    assert array.copy_to_host().tolist() == [2, 3, 4, 5, 6]
    with pytest.raises(BufferError, match="copy is False"):
        zeusm.from_arrow(theirs, copy=False)
    assert zeusm.from_arrow(pa.array([], pa.int8())).shape == (0,)
    small = na.c_array([1, 2, 3], na.int16())
    assert zeusm.from_arrow(small, device="level_zero:gpu").copy_to_host().tolist() == [1, 2, 3]


def test_a_view_keeps_the_array_and_releases_it():
    released = []

    class Theirs(zm.MemoryUSMHost):
        pass

    memory = Theirs(40)
    weakref.finalize(memory, released.append, True)
    view = zeusm.from_arrow(pa.Array.from_buffers(pa.int64(), 5, [None, pa.py_buffer(memory)]))
    del memory
    gc.collect()
    assert not released
    assert view.size == 5
    del view
    gc.collect()
    assert released


class Once:
    """An object that gives the same capsules each time."""

    def __init__(self, array):
        self.capsules = array.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules


def test_an_array_is_taken_once():
    once = Once(zeusm.asarray(VALUES, usm_type="shared"))
    assert zeusm.from_arrow(once).size == 5
    with pytest.raises(ValueError, match="used before"):
        zeusm.from_arrow(once)


def test_what_is_no_array_of_numbers_is_refused():
    nulls = pa.array([None, 1, 2])
    for theirs, error, match in [
        (nulls, ValueError, "fill_null"),
        (pa.array([True]), TypeError, "'b'"),
        (pa.array(["text"]), TypeError, "'u'"),
        (pa.array([[1]]), TypeError, "cast"),
        (pa.array([1], pa.timestamp("s")), TypeError, "tss"),
        (pa.array(["a"]).dictionary_encode(), TypeError, "dictionary-encoded"),
        (pa.table({"a": [1]}), TypeError, "combine_chunks"),
        (pa.chunked_array([[1], [2]]), TypeError, "combine_chunks"),
        (VALUES, TypeError, "__arrow_c_array__"),
    ]:
        with pytest.raises(error, match=match):
            zeusm.from_arrow(theirs)
    assert zeusm.from_arrow(nulls.fill_null(0)).copy_to_host().tolist() == [0, 1, 2]


@pytest.mark.parametrize("capsules", [(), (1, 2), (None, None), 5, ({}, {}), "swapped", "same"])
def test_what_is_no_pair_of_capsules_is_an_error(capsules):
    schema, array = zeusm.asarray(VALUES, usm_type="host").__arrow_c_array__()
    once = Once.__new__(Once)
    once.capsules = {"swapped": (array, schema), "same": (schema, schema)}.get(
        capsules if isinstance(capsules, str) else None, capsules
    )
    with pytest.raises((TypeError, ValueError, IndexError)):
        zeusm.from_arrow(once)
