"""numba-dpex's kernels take a `UsmArray` as it is."""

import gc
import weakref

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory
from zeusm import _numba_dpex

numba_dpex = pytest.importorskip(
    "numba_dpex", reason="numba-dpex is not in this environment; .venv-numba-dpex has it"
)
import dpctl.tensor  # noqa: E402

N = 12
pytestmark = pytest.mark.filterwarnings("default")  # numba-dpex has some of its own.


@numba_dpex.kernel
def increment(item, x, y):
    i = item.get_id(0)
    y[i] = x[i] + 1


@numba_dpex.kernel
def increment_matrix(item, x, y):
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = x[i, j] + 1


@numba_dpex.dpjit
def launch(x, y):
    numba_dpex.call_kernel(increment, numba_dpex.Range(N), x, y)


def run(x, y):
    numba_dpex.call_kernel(increment, numba_dpex.Range(N), x, y)


def other_context():
    device = dpctl.SyclDevice("level_zero:gpu")
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_a_kernel_works_in_place(usm_type, dtype):
    x = zeusm.asarray(np.arange(N, dtype=dtype), usm_type=usm_type)
    y = zeusm.empty(N, dtype, usm_type=usm_type)
    run(x, y)
    np.testing.assert_array_equal(y.copy_to_host(), np.arange(1, N + 1, dtype=dtype))


def test_kinds_and_packages_mix():
    x = zeusm.asarray(np.arange(N, dtype="f4"), usm_type="shared")
    y = dpctl.tensor.empty(N, dtype="f4")
    z = zeusm.empty(N, "f4", usm_type="device")
    run(x, y)
    run(y, z)
    assert z.copy_to_host().tolist() == list(range(2, N + 2))


@pytest.mark.parametrize("key", np.s_[::-1, ::2, 3:], ids=str)
def test_views_keep_strides_and_offset(usm_type, key):
    source = np.arange(2 * N, dtype="f4")
    array = zeusm.asarray(source, usm_type=usm_type)[key][:N]
    run(array, array)
    assert array.copy_to_host().tolist() == (source[key][:N] + 1).tolist()


def test_layouts(usm_type):
    source = np.arange(6, dtype="i8").reshape(2, 3)
    x = zeusm.asarray(source, usm_type=usm_type)
    y = zeusm.empty((2, 3), "i8", usm_type=usm_type, order="F")
    numba_dpex.call_kernel(increment_matrix, numba_dpex.Range(2, 3), x, y)
    numba_dpex.call_kernel(increment_matrix, numba_dpex.Range(3, 2), y.T, x.T)
    np.testing.assert_array_equal(x.copy_to_host(), source + 2)


def test_each_context_has_its_queue():
    arrays = [
        zeusm.asarray(np.zeros(N, "f4"), usm_type="device", queue=queue)
        for queue in (None, other_context())
    ]
    for array in arrays * 2:
        run(array, array)
    assert [array.copy_to_host()[0] for array in arrays] == [2, 2]
    with pytest.raises(Exception, match="same queue"):
        run(*arrays)


def test_an_array_taken_for_one_of_another_context_is_refused():
    """What Numba's memory of types can come to: the type names the queue of another array."""
    array = zeusm.asarray(np.zeros(N, "f4"), usm_type="host")
    elsewhere = zeusm.asarray(np.zeros(N, "f4"), usm_type="host", queue=other_context())
    key = hash(_numba_dpex._shared_queue(array))
    assert _numba_dpex._as_dpctl(array, key)._pointer == array._pointer
    with pytest.raises(ValueError, match="another context"):
        _numba_dpex._as_dpctl(elsewhere, key)


def test_a_view_in_any_context_is_taken():
    array = zeusm.asarray(np.zeros(N, "f4"), usm_type="host", queue=other_context())
    view = dpctl.tensor.asarray(array).to_device(array.sycl_queue)
    assert view._pointer == array._pointer
    launch(view, view)
    assert array.copy_to_host().tolist() == [1] * N


@pytest.mark.parametrize("kind", ["device", "shared"])
def test_read_only_is_kept(kind):
    class ReadOnly:
        @property
        def __sycl_usm_array_interface__(self):
            interface = array.__sycl_usm_array_interface__
            return interface | {"data": (interface["data"][0], True)}

    array = zeusm.asarray(np.zeros(N, "f4"), usm_type=kind)
    read_only = zeusm.as_usm_array(ReadOnly())
    assert read_only.readonly
    result = zeusm.empty(N, "f4", usm_type=kind)
    run(read_only, result)
    assert result.copy_to_host().tolist() == [1] * N
    with pytest.raises(Exception, match="readonly"):
        run(result, read_only)
    assert array.copy_to_host().tolist() == [0] * N


def test_memory_is_let_go(usm_type):
    array = zeusm.asarray(np.zeros(N, "f4"), usm_type=usm_type)
    for _ in range(3):
        run(array, array)
    watch = weakref.ref(array.base)
    del array
    gc.collect()
    assert watch() is None


def test_importing_zeusm_imports_no_numba(fresh):
    fresh("import sys, zeusm; assert not {'numba', 'numba_dpex', 'dpctl'} & set(sys.modules)")
