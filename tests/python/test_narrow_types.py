"""Arrays of the number formats of machine learning, which NumPy has by `ml_dtypes` and DLPack by codes."""

import copy
import pickle

import dlpack_abi
import numpy as np
import pytest
import zeusm

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is in the first environment only")
pytestmark = pytest.mark.once

# Each with DLPack's code and the bits of a number.
TYPES = {
    "bfloat16": (4, 16),
    "complex32": (5, 32),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
    "float6_e2m3fn": (15, 6),
    "float6_e3m2fn": (16, 6),
    "float4_e2m1fn": (17, 4),
    "int4": (0, 4),
    "uint4": (1, 4),
    "int2": (0, 2),
    "uint2": (1, 2),
    "int1": (0, 1),
    "uint1": (1, 1),
}
SHAPE = (5, 8)


def bits(array):
    return array.view(f"u{array.itemsize}")


@pytest.fixture(params=TYPES)
def numbers(request):
    """A NumPy array of the type, of random bits."""
    dtype = np.dtype(getattr(ml_dtypes, request.param))
    width = TYPES[request.param][1]
    random = np.random.default_rng(1).integers(0, 2 ** min(width, 32), SHAPE)
    return random.astype(f"u{dtype.itemsize}").view(dtype)


def same(array, numbers):
    assert array.dtype == numbers.dtype
    found = array.copy_to_host()
    assert found.dtype == numbers.dtype
    assert np.array_equal(bits(found), bits(numbers))
    return True


def test_an_array_is_made_viewed_copied_and_pickled(numbers, usm_type):
    array = zeusm.asarray(numbers, usm_type=usm_type)
    assert same(array, numbers)
    assert (array.itemsize, array.nbytes) == (numbers.itemsize, numbers.nbytes)
    assert numbers.dtype.name in repr(array)
    assert same(array[1::2, ::-3].T, numbers[1::2, ::-3].T)
    assert same(copy.copy(array[:, 2:5]), numbers[:, 2:5])
    assert same(pickle.loads(pickle.dumps(array[::2])), numbers[::2])
    there = zeusm.empty(SHAPE, numbers.dtype.name, usm_type=usm_type)
    there[...] = array
    assert same(there, numbers)
    there[1:3] = numbers[0]
    there[:, ::2].copy_from_host(numbers[:, 1::2])
    numbers = numbers.copy()
    numbers[1:3], numbers[:, ::2] = numbers[0], array.copy_to_host()[:, 1::2]
    assert same(there, numbers)
    out = np.empty(SHAPE, numbers.dtype)
    there.copy_to_host(out)
    assert np.array_equal(bits(out), bits(numbers))
    view = array.base.view(numbers.dtype, (4,), (2,), 3)
    assert same(view, array.copy_to_host().reshape(-1)[3:11:2])


def test_numpy_writes_in_place(numbers, host_class):
    array = host_class(numbers.nbytes).view(numbers.dtype, SHAPE)
    view = np.asarray(array[:, 1:])
    assert view.dtype == numbers.dtype
    view[...] = numbers[:, 1:]
    assert same(array[:, 1:], numbers[:, 1:])
    with pytest.raises(ValueError, match=f"'{numbers.dtype.name}' have no buffer format"):
        memoryview(array)


def test_dlpack_carries_the_type(numbers, usm_type):
    array = zeusm.asarray(numbers, usm_type=usm_type)
    code, width = TYPES[numbers.dtype.name]
    structure = dlpack_abi.structure_in(array.__dlpack__(max_version=(1, 1)))
    dtype = structure.tensor.dtype
    assert (dtype.code, dtype.bits, dtype.lanes) == (code, width, 1)
    assert bool(structure.flags & 4) == (width < 8)
    same_memory = zeusm.from_dlpack(array)
    assert same_memory._pointer == array._pointer
    assert same(same_memory, numbers)
    if width < 8:
        with pytest.raises(BufferError, match="versioned structure"):
            array.__dlpack__()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_tvm_ffi(name, usm_type):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    array = zeusm.empty(SHAPE, name, usm_type=usm_type)
    back = tvm_ffi.get_global_func("testing.echo")(array)
    assert (back._pointer, back.dtype) == (array._pointer, array.dtype)
    assert str(tvm_ffi.from_dlpack(array).dtype) == name


def test_dpnp_has_no_such_types(usm_type):
    dpnp = pytest.importorskip("dpnp")
    array = zeusm.empty(3, "bfloat16", usm_type=usm_type)
    with pytest.raises(BufferError, match="type code 4"):
        dpnp.from_dlpack(array)


def test_the_protocol_of_numpys_letters_names_dlpack():
    array = zeusm.empty(3, "bfloat16", usm_type="shared")
    for protocol in ("__sycl_usm_array_interface__", "__array_interface__"):
        with pytest.raises(AttributeError, match="bfloat16: exchange the array by DLPack"):
            getattr(array, protocol)


def test_pairs_that_fill_a_byte(usm_type):
    """PyTorch's float4_e2m1fn_x2, for which NumPy has no type."""
    pair = dlpack_abi.DataType(17, 4, 2)
    memory = zeusm.asarray(np.arange(8, dtype="u1"), usm_type=usm_type)
    array = zeusm.from_dlpack(dlpack_abi.Exporter(memory, dtype=pair))
    assert (array._pointer, array.shape, array.itemsize) == (memory._pointer, (8,), 1)
    assert "float4_e2m1fn_x2" in repr(array)
    structure = dlpack_abi.structure_in(array[2::3].__dlpack__(max_version=(1, 1)))
    dtype = structure.tensor.dtype
    assert (dtype.code, dtype.bits, dtype.lanes, structure.flags & 4) == (17, 4, 2, 0)
    assert zeusm.from_dlpack(array)._pointer == array._pointer
    assert bytes(copy.copy(array[2::3]).base.copy_to_host()) == bytes([2, 5])
    with pytest.raises(TypeError, match="ml_dtypes"):
        array.dtype  # noqa: B018
    with pytest.raises(BufferError, match="3 lanes"):
        zeusm.from_dlpack(dlpack_abi.Exporter(memory, dtype=dlpack_abi.DataType(17, 4, 3)))


def test_packed_numbers_are_refused():
    array = zeusm.empty(8, "int8", usm_type="shared")
    exporter = dlpack_abi.Exporter(array, dtype=dlpack_abi.DataType(0, 4, 1))
    with pytest.raises(BufferError, match="4 bits"):
        zeusm.from_dlpack(exporter)


def test_without_ml_dtypes(fresh):
    fresh("""
        import sys
        sys.modules["ml_dtypes"] = None
        import zeusm
        array = zeusm.empty((2, 3), "float8_e5m2", usm_type="shared")
        assert "float8_e5m2" in repr(array[1:])
        assert zeusm.from_dlpack(array)._pointer == array._pointer
        try:
            array.dtype
        except TypeError as error:
            assert "ml_dtypes" in str(error) and "uint8" in str(error)
        else:
            raise AssertionError
    """)


def test_an_exception_of_a_handler_during_the_import_of_ml_dtypes_comes_through(fresh):
    fresh("""
        import signal, sys
        import zeusm

        class Finder:
            def find_spec(self, name, *_):
                if name == "ml_dtypes":
                    signal.raise_signal(signal.SIGALRM)

        def timeout(*_):
            raise TimeoutError

        signal.signal(signal.SIGALRM, timeout)
        sys.meta_path.insert(0, Finder())
        array = zeusm.empty(3, "float8_e5m2", usm_type="shared")
        try:
            array.dtype
        except TimeoutError:
            sys.exit(0)
        raise AssertionError
    """)
