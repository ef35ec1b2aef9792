"""Functions that Numba compiles for the host take arrays in place, without numba-dpex."""

import gc
import weakref
from importlib.util import find_spec

import numpy as np
import pytest
import zeusm

numba = pytest.importorskip("numba", reason="Numba is not in this environment")

VALUES = np.arange(12, dtype="f4").reshape(3, 4)
LAYOUTS = {
    "C": np.s_[:],
    "offset": np.s_[1:],
    "strided": np.s_[:, ::2],
    "negative": np.s_[::-1, ::-1],
    "row": np.s_[1],
}

pytestmark = pytest.mark.skipif(
    find_spec("numba_dpex") is not None,
    reason="numba-dpex has types of its own; .venv has Numba alone",
)


@numba.njit
def total(array):
    return array.sum()


@numba.njit
def increment(array):
    for index in np.ndindex(array.shape):
        array[index] += 1


@numba.njit
def same(array):
    return array


@pytest.fixture(params=["shared", "host"])
def usm_type(request):
    return request.param


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays(usm_type, layout):
    array = zeusm.asarray(VALUES, usm_type=usm_type)[LAYOUTS[layout]]
    assert total(array) == VALUES[LAYOUTS[layout]].sum()
    increment(array)
    np.testing.assert_array_equal(array.copy_to_host(), VALUES[LAYOUTS[layout]] + 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float64", "complex64"])
def test_types(usm_type, dtype):
    values = np.arange(6).astype(dtype)
    assert total(zeusm.asarray(values, usm_type=usm_type)) == values.sum()


def test_a_result_is_numpys_array_over_the_memory(usm_type):
    array = zeusm.asarray(VALUES, usm_type=usm_type)
    result = same(array)
    assert isinstance(result, np.ndarray)
    assert result.ctypes.data == array._pointer
    del array
    np.testing.assert_array_equal(result, VALUES)


def test_pending_work_is_waited_for(usm_type):
    array = zeusm.asarray(np.zeros(1000, "u1"), usm_type=usm_type)
    for value in range(1, 20):
        array.base.memset_async(value)
        assert total(array) == 1000 * value


def test_read_only_arrays(usm_type):
    array = zeusm.asarray(VALUES, usm_type=usm_type)
    desc = array.__sycl_usm_array_interface__
    frozen = zeusm.from_sycl_usm_array_interface(desc | {"data": (desc["data"][0], True)}, array)
    assert total(frozen) == VALUES.sum()
    with pytest.raises(numba.TypingError, match=r"[Cc]annot modify|readonly"):
        increment(frozen)


def test_device_memory_is_refused():
    array = zeusm.asarray(VALUES, usm_type="device")
    with pytest.raises(TypeError, match="USM-device"):
        total(array)


def test_memory_is_freed():
    array = zeusm.asarray(VALUES, usm_type="shared")
    memory = weakref.ref(array.base)
    total(array)
    del array
    gc.collect()
    assert memory() is None


def test_records_and_their_fields(usm_type):
    host = np.array([(1, 2), (3, 4)], [("x", "f4"), ("y", "i8")])
    array = zeusm.asarray(host, usm_type=usm_type)
    assert [total(array[name]) for name in "xy"] == [4, 6]
    increment(array["y"])  # Its addresses are no multiples of its size.
    double(array)
    np.testing.assert_array_equal(array["y"].copy_to_host(), [3, 5])
    np.testing.assert_array_equal(array["x"].copy_to_host(), [2, 6])


@numba.njit
def double(array):
    for record in array:
        record.x *= 2


def test_types_of_fields_have_their_alignment(usm_type):
    array = zeusm.asarray(np.zeros(2, [("x", "f4"), ("y", "i8")]), usm_type=usm_type)
    assert [numba.typeof(array[name]).aligned for name in "xy"] == [True, False]


def test_a_global_variable_is_refused_by_its_name(usm_type):
    GLOBAL = zeusm.asarray(VALUES, usm_type=usm_type)

    @numba.njit
    def of_global():
        return GLOBAL.sum()

    with pytest.raises(numba.TypingError, match="GLOBAL.*UsmArray"):
        of_global()


def test_explicit_signatures_take_numpys_view(usm_type):
    array = zeusm.asarray(VALUES[0], usm_type=usm_type)
    compiled = numba.njit("float32(float32[::1])")(lambda array: array.sum())
    with pytest.raises(TypeError):
        compiled(array)
    assert compiled(np.asarray(array)) == VALUES[0].sum()
