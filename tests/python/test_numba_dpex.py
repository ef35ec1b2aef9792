"""Kernels of numba-dpex accept a `UsmArray` without a conversion."""

import gc
import inspect
import os
import subprocess
import sys
import weakref
from pathlib import Path

import dpctl
import memory_of_process
import numpy as np
import pytest
import zeusm
import zeusm.memory
from zeusm import _numba

numba_dpex = pytest.importorskip(
    "numba_dpex", reason="numba-dpex is not in this environment; .venv-numba-dpex has it"
)
import dpctl.memory  # noqa: E402
import dpctl.tensor  # noqa: E402
import numba  # noqa: E402

N = 12
pytestmark = pytest.mark.filterwarnings("default")  # numba-dpex raises warnings of its own.


@numba_dpex.kernel
def increment(item, x, y):
    i = item.get_id(0)
    y[i] = x[i] + 1


@numba_dpex.kernel
def increment_matrix(item, x, y):
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = x[i, j] + 1


@numba_dpex.kernel
def increment_number(item, x):
    x[()] = x[()] + 1


@numba_dpex.kernel
def compute(item, x):
    i = item.get_id(0)
    value = i
    for k in range(20000):
        value = (value * 3 + k) % 1000003
    x[i] = value + 1


@numba_dpex.dpjit
def launch(x, y):
    numba_dpex.call_kernel(increment, numba_dpex.Range(N), x, y)


def run(x, y):
    numba_dpex.call_kernel(increment, numba_dpex.Range(N), x, y)


def other_context():
    device = dpctl.SyclDevice("level_zero:gpu")
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


@pytest.mark.parametrize("launcher", [run, launch])
def test_a_kernel_runs_on_arrays_of_two_kinds(launcher):
    x = zeusm.asarray(np.arange(N, dtype="f4"), usm_type="device")
    y = zeusm.empty(N, "f4", usm_type="shared")
    launcher(x, y)
    np.testing.assert_array_equal(y.copy_to_host(), np.arange(1, N + 1, dtype="f4"))


def test_a_kernel_does_not_take_arrays_of_two_contexts():
    x = zeusm.empty(N)
    y = zeusm.empty(N, queue=dpctl.SyclQueue(dpctl.SyclContext([x.sycl_device]), x.sycl_device))
    with pytest.raises(Exception, match="same queue"):
        run(x, y)


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


@pytest.mark.parametrize("make_queue", [lambda: None, dpctl.SyclQueue, other_context])
def test_views_of_dpctl_share_the_arrays_queue(make_queue):
    queue = make_queue()
    x = zeusm.asarray(np.arange(N, dtype="f4"), usm_type="shared", queue=queue)
    y = zeusm.empty(N, "f4", usm_type="device", queue=queue)
    run(dpctl.tensor.asarray(x), dpctl.tensor.asarray(y))
    assert y.copy_to_host().tolist() == list(range(1, N + 1))


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


@pytest.mark.parametrize("properties", [{}, {"property": "in_order"}])
def test_accesses_come_after_asynchronous_kernels(usm_type, properties):
    """Kernels of numba-dpex are on the shared queue, whatever the array's is."""
    shared = zeusm.empty(1, usm_type=usm_type).sycl_queue
    own = dpctl.SyclQueue(shared.sycl_context, shared.sycl_device, **properties)
    for _ in range(5):
        array = zeusm.asarray(np.zeros(N, "i8"), usm_type=usm_type, queue=own)
        task, kernel = numba_dpex.call_kernel_async(compute, numba_dpex.Range(N), (), array)
        assert array.copy_to_host().all()
        kernel.wait()
        task.wait()


def test_an_array_taken_for_one_of_another_context_is_refused():
    """Numba caches types, so a type may hold the queue of another array."""
    array = zeusm.asarray(np.zeros(N, "f4"), usm_type="host")
    elsewhere = zeusm.asarray(np.zeros(N, "f4"), usm_type="host", queue=other_context())
    key = hash(_numba._shared_queue(array))
    assert _numba._as_dpctl(array, key, False)._pointer == array._pointer
    with pytest.raises(ValueError, match="another context"):
        _numba._as_dpctl(elsewhere, key, False)


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


def test_kernels_without_a_wait_retain_their_memory(usm_type):
    x = zeusm.asarray(np.zeros(N, "f4"), usm_type=usm_type)
    y = zeusm.empty(N, "f4", usm_type=usm_type)
    released, done = numba_dpex.call_kernel_async(increment, numba_dpex.Range(N), (), x, y)
    released_too, done = numba_dpex.call_kernel_async(increment, numba_dpex.Range(N), (done,), y, x)
    watch = weakref.ref(y.base)
    del y
    done.wait()
    assert x.copy_to_host().tolist() == [2] * N
    released.wait()
    released_too.wait()
    gc.collect()
    assert watch() is None


def test_zeusms_events_come_before_kernels():
    x = zeusm.asarray(np.zeros(N, "u1"), usm_type="shared")
    y = zeusm.empty(N, "u1", usm_type="shared")
    filled = x.base.memset_async(5)
    released, done = numba_dpex.call_kernel_async(
        increment, numba_dpex.Range(N), (filled.sycl_event,), x, y
    )
    x.base.memset_async(9, depends=done).wait()
    assert y.copy_to_host().tolist() == [6] * N
    released.wait()


def test_no_dimensions_are_refused_as_for_dpctls_arrays(usm_type):
    def launch(array):
        numba_dpex.call_kernel(increment_number, numba_dpex.Range(1), array)

    with pytest.raises(TypeError, match="can't unbox"):
        launch(dpctl.tensor.asarray(np.float32(3)))
    array = zeusm.asarray(np.float32(3), usm_type=usm_type)
    with pytest.raises(TypeError, match=r"without dimensions.*reshape\(1\)"):
        launch(array)
    one = array.reshape(1)
    numba_dpex.call_kernel(increment, numba_dpex.Range(1), one, one)
    assert array.copy_to_host() == 4


def test_there_are_no_types_of_machine_learning(usm_type):
    array = zeusm.empty(N, "bfloat16", usm_type=usm_type)
    with pytest.raises(TypeError, match="bfloat16"):
        run(array, array)


@numba.njit
def double(x):
    for i in range(x.size):
        x[i] *= 2
    return x.sum()


def test_njit_works_on_what_the_host_sees(host_class):
    array = host_class(8 * N).view("f8")
    array.copy_from_host(np.arange(N, dtype="f8"))
    assert double(array) == 2 * sum(range(N))
    assert array.copy_to_host()[-1] == 2 * (N - 1)


def test_what_compiled_functions_return_is_dpctls(host_class):
    array = host_class(4 * N).view("f4")
    for compiled in numba.njit(lambda x: x), numba_dpex.dpjit(lambda x: x):
        result = compiled(array)
        assert isinstance(result, dpctl.tensor.usm_ndarray)
        assert result._pointer == array._pointer
        assert (
            zeusm.from_dlpack(result)._pointer == zeusm.asarray(result)._pointer == array._pointer
        )


def test_njit_is_kept_from_device_memory():
    array = zeusm.asarray(np.arange(N, dtype="f8"), usm_type="device")
    with pytest.raises(TypeError, match="host"):
        double(array)
    assert array.copy_to_host().tolist() == list(range(N))


def test_importing_zeusm_imports_no_numba(fresh):
    fresh("import sys, zeusm; assert not {'numba', 'numba_dpex', 'dpctl'} & set(sys.modules)")


def test_numba_imports_no_zeusm(fresh):
    fresh(
        """
        import sys, numba
        numba.njit(lambda x: x + 1)(1)
        assert "zeusm_numba" in sys.modules, "Numba has not loaded the extension"
        assert not {"zeusm", "dpctl", "numba_dpex"} & set(sys.modules)
        """
    )


def test_zeusm_beside_numba_imports_no_numba_dpex(fresh):
    """Numba accepts host-accessible memory by the buffer protocol."""
    fresh(
        """
        import sys, numba, zeusm
        array = zeusm.asarray([1.0, 2.0], usm_type="shared")
        assert numba.njit(lambda x: x[1])(array) == 2
        assert "numba_dpex" not in sys.modules
        """
    )


@pytest.mark.parametrize(
    ("imports", "host_first"),
    [
        ("import zeusm, numba_dpex", False),
        ("import numba_dpex, zeusm", True),
        ("import zeusm, numba; numba.njit(abs_of)(1); import numba_dpex", False),
        ("import numba; numba.njit(abs_of)(1); import zeusm, numba_dpex", True),
        ("import numba; numba.njit(abs_of)(1); import numba_dpex, zeusm", False),
        ("import numba, zeusm, numba_dpex", True),
    ],
)
def test_any_order_of_imports(fresh, tmp_path, imports, host_first):
    program = tmp_path / "program.py"  # Numba reads the source from a file.
    program.write_text(f"""
def abs_of(x):
    return abs(x)


{imports}
array = zeusm.asarray([1.0, 2.0], usm_type="shared")
if {host_first}:
    import numba

    assert numba.njit(lambda x: x[1])(array) == 2


@numba_dpex.kernel
def add(item, x):
    x[item.get_id(0)] += 1


numba_dpex.call_kernel(add, numba_dpex.Range(2), array)
assert array.copy_to_host().tolist() == [2, 3]
""")
    # The import of numba-dpex looks for devices, so the runtime is preloaded, as a GPU's driver would be installed.
    fresh.run(program, env={"LD_PRELOAD": str(zeusm.runtime().path)})


class TestRecords:
    def test_a_kernel_takes_a_field(self):
        host = np.ones(N, [("x", "f4"), ("z", "c8"), ("y", "f4")])
        array = zeusm.asarray(host)
        for name in host.dtype.names:  # A c8 is not at a multiple of its size.
            run(array[name], array[name])
            host[name] += 1
        np.testing.assert_array_equal(array.copy_to_host(), host)

    @pytest.mark.parametrize(
        ("dtype", "message"),
        [
            ([("x", "i8"), ("t", "f4")], "no multiple of the 8 bytes of an element"),
            ([("t", "u1"), ("x", "f4"), ("u", "u1", (3,))], "are not aligned"),
        ],
    )
    def test_other_fields_are_refused(self, dtype, message):
        field = zeusm.asarray(np.ones(N, dtype))["x"]
        with pytest.raises(ValueError, match=message):
            run(field, field)

    def test_records_are_refused(self):
        array = zeusm.empty(N, dtype=[("x", "f4"), ("y", "f4")])
        with pytest.raises(TypeError, match="takes no records; give it a field, one of x, y"):
            run(array, array)


@pytest.mark.daily
def test_launches_in_a_context_of_several_devices_grow_the_process(fresh):
    """A row of docs/limits.md: it is obsolete when this fails."""
    program = (
        inspect.getsource(memory_of_process)
        + """
import zeusm, dpnp

x = dpnp.ones(8)
assert len(x.sycl_context.get_devices()) == 2


def grown(launches):
    before = resident()
    for number in range(launches):
        dpnp.add(x, 1, out=x)
        if number % 100 == 0:
            x.sycl_queue.wait()
    return resident() - before


grown(3000)
assert grown(5000) > 5000 * 50, "the row is obsolete"
"""
    )
    fresh(program, env={"ZEUSM_CPU_DEVICES": "2"})


@pytest.mark.daily
def test_a_wait_in_the_order_of_a_queue_hangs():
    """A row of docs/limits.md, on a device that is not zeusm's: it is obsolete when this fails."""
    program = """
import dpctl, dpctl.tensor, numba_dpex

@numba_dpex.kernel
def increment(item, x):
    x[item.get_id(0)] += 1

queue = dpctl.SyclQueue("opencl:cpu", property="in_order")
x = dpctl.tensor.zeros(9, dtype="i8", sycl_queue=queue)
numba_dpex.call_kernel(increment, numba_dpex.Range(9), x)
print("begun", flush=True)
for _ in range(20):
    numba_dpex.call_kernel_async(increment, numba_dpex.Range(9), (), x)
    numba_dpex.call_kernel(increment, numba_dpex.Range(9), x)
"""
    library = Path(sys.prefix, "lib", "libintelocl.so")
    environment = os.environ | {"OCL_ICD_FILENAMES": str(library)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "begun\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=10)
        finally:
            child.kill()


def test_a_command_does_not_wait_for_an_event_of_another_device(fresh):
    """A row of docs/limits.md: it is obsolete when this fails."""
    program = """
import zeusm
import dpctl, dpctl.memory
import numpy as np

here, there = (dpctl.SyclQueue(device) for device in dpctl.get_devices("level_zero"))
source = np.ones(64 << 20, "u1")
target = dpctl.memory.MemoryUSMDevice(source.size, queue=here)


def is_early():
    copied = here.memcpy_async(target, source, source.size)
    there.submit_barrier([copied]).wait()
    state = copied.execution_status
    here.wait()
    return state != dpctl.event_status_type.complete


assert any(is_early() for _ in range(20)), "the row is obsolete"
"""
    fresh(program, env={"ZEUSM_CPU_DEVICES": "2"})


@pytest.mark.daily
def test_a_transform_on_a_gpu_ends_the_process(fresh):
    """A row of docs/limits.md: it is obsolete when this fails."""
    program = """
import zeusm, dpnp

dpnp.fft.fft(dpnp.ones(48, dtype="c8", device="level_zero:gpu"))
"""
    assert "OpenCL error -1" in fresh(program, crashes=True).stderr


@pytest.mark.daily
def test_a_kernel_over_a_range_is_wrong_in_strided_arrays(fresh):
    """A row of docs/limits.md, on a device that is not zeusm's: it is obsolete when this fails."""
    program = """
import dpctl.tensor, numba_dpex

@numba_dpex.kernel
def increment(item, x):
    x[item.get_id(0)] += 1

x = dpctl.tensor.zeros(2000, dtype="i4", device="opencl:cpu")[::2]
numba_dpex.call_kernel(increment, numba_dpex.Range(x.size), x)
assert (dpctl.tensor.asnumpy(x) != 1).any(), "the row is obsolete"
"""
    fresh(program, env={"OCL_ICD_FILENAMES": str(Path(sys.prefix, "lib", "libintelocl.so"))})
