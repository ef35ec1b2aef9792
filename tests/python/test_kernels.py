"""Kernels of dpnp and numba-dpex on zeusm's memory, compared with NumPy."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zeusm.memory

# isort: split
import dpctl.memory
import dpnp

try:
    from dpnp.tensor import usm_ndarray
except ImportError:  # dpctl provided the array before dpnp 0.19.
    from dpctl.tensor import usm_ndarray

# dpnp 0.15 and numba-dpex raise deprecation warnings of their own.
pytestmark = pytest.mark.filterwarnings("default")
RANDOM = np.random.default_rng(7)


def in_usm(numbers, usm_type="shared"):
    """Memory of zeusm with the numbers, and a dpnp array over it without a copy."""
    numbers = np.ascontiguousarray(numbers)
    memory_class = getattr(zeusm.memory, f"MemoryUSM{usm_type.title()}")
    memory = memory_class(numbers.nbytes)
    memory.copy_from_host(numbers)
    buffer = dpctl.memory.as_usm_memory(memory)
    array = usm_ndarray(numbers.shape, dtype=numbers.dtype, buffer=buffer)
    array = dpnp.asarray(array.to_device(memory.sycl_device))
    assert array.get_array().usm_data._pointer == memory._pointer
    return memory, array


def seen(memory, like):
    """The content of the memory, read by zeusm."""
    content = memory.tobytes() if memory.get_usm_type() == "device" else memoryview(memory)
    return np.frombuffer(content, dtype=like.dtype).reshape(like.shape)


def beside(x, numbers):
    """An array of the numbers, of NumPy or on the device of `x`."""
    return (
        np.asarray(numbers)
        if isinstance(x, np.ndarray)
        else dpnp.asarray(numbers, device=x.sycl_device)
    )


NUMBERS = RANDOM.random((30, 40)) * 10 - 5
PROGRAMS = {
    "arithmetic": lambda xp, x: 2 * x + x * x - x / 3,
    "functions": lambda xp, x: xp.sin(x) + xp.exp(-xp.abs(x)),
    "comparison": lambda xp, x: xp.where(x > 0, x, -1.0),
    "sum": lambda xp, x: xp.sum(x, axis=0),
    "mean and variance": lambda xp, x: xp.mean(x, axis=1) + xp.var(x, axis=1),
    "greatest": lambda xp, x: xp.max(x, axis=1) - xp.min(x, axis=1),
    "argmax": lambda xp, x: xp.argmax(x, axis=0),
    "cumulative sum": lambda xp, x: xp.cumsum(x, axis=1),
    "sort": lambda xp, x: xp.sort(x, axis=1),
    "argsort": lambda xp, x: xp.argsort(x, axis=0),
    "slices": lambda xp, x: x[::-2, 3:30:4].T + 1,
    "index arrays": lambda xp, x: x[beside(x, [3, 1, 4, 1, 5]), beside(x, [9, 2, 6, 5, 3])],
    "masks": lambda xp, x: x[x > 1],
    "creation": lambda xp, x: xp.linspace(0, 1, 40) + xp.eye(40) + xp.full((40, 40), 2.0),
    "joining": lambda xp, x: xp.concatenate([x, x[:5]]).reshape(-1, 8),
    "logic": lambda xp, x: xp.logical_and(x > -1, xp.logical_not(x > 1)),
}


def compare(program, usm_type):
    """dpnp's answer is NumPy's, and the operand has not changed."""
    memory, x = in_usm(NUMBERS, usm_type)
    ours = dpnp.asnumpy(PROGRAMS[program](dpnp, x))
    expected = PROGRAMS[program](np, NUMBERS)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(seen(memory, NUMBERS), NUMBERS)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("usm_type", ["device", "shared"])
def test_dpnp_gives_numpys_answers(program, usm_type):
    compare(program, usm_type)


@pytest.mark.parametrize("program", PROGRAMS)
def test_dpnp_gives_numpys_answers_in_host_memory(program):
    """oneMKL copies operands behind the operations that write them without waiting, so the device must keep the order."""
    for _ in range(10):
        compare(program, "host")


@pytest.mark.parametrize("dtype", ["?", "i4", "i8", "u1", "f2", "f4", "f8", "c8", "c16"])
def test_dpnp_writes_what_zeusm_sees(dtype, usm_type):
    numbers = np.arange(1000).astype(dtype)
    memory, x = in_usm(numbers, usm_type)
    x[...] = x[::-1].copy()
    x.sycl_queue.wait()
    assert np.array_equal(seen(memory, numbers), numbers[::-1])


def product_or_refusal(x, y):
    """The product, or the message of oneMKL of dpnp 0.15, to which the device is an unknown GPU."""
    try:
        return dpnp.asnumpy(dpnp.matmul(x, y))
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c16"])
def test_a_matrix_product_is_right_or_refused_in_words(dtype):
    left, right = np.arange(12).reshape(3, 4).astype(dtype), np.eye(4, dtype=dtype)[::-1]
    (_, x), (_, y) = in_usm(left), in_usm(right)
    # oneMKL rejects the first product of a process, and computes later ones for which it has SPIR-V.
    for product in [product_or_refusal(x, y) for _ in range(3)]:
        if isinstance(product, str):
            assert dpnp.__version__.startswith("0.15")
            assert "oneapi::mkl" in product
            # The error depends on the processor: a version of oneMKL that does not support it has no kernels to build.
            assert any(why in product for why in ["unknown GPU architecture", "Level-Zero error"])
        else:
            assert np.array_equal(product, left @ right)


def test_threads_launch_at_once():
    """Two deadlocks of dpnp itself are avoided: the first call of a module is not one of the threads', as it initialises a static
    object; and all operands are on the device, as dpnp waits for the copy of a number of Python.
    """
    failures = []
    (_, one), (_, first) = in_usm(np.ones(1)), in_usm(np.ones(10_000))
    dpnp.add(first, one, out=first)

    def work(numbers, memory, x):
        try:
            for _ in range(20):
                dpnp.add(x, one, out=x)
            np.testing.assert_allclose(seen(memory, numbers), numbers + 20)
        except BaseException as error:
            failures.append(error)

    inputs = [np.random.default_rng(seed).random(10_000) for seed in range(4)]
    threads = [
        threading.Thread(target=work, args=(numbers, *in_usm(numbers))) for numbers in inputs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


class TestNumbaDpex:
    @pytest.fixture(autouse=True)
    def numba_dpex(self):
        """Skips without numba-dpex, which needs dpctl 0.17."""
        reason = "numba-dpex is not in this environment; .venv-numba-dpex has it"
        self.dpex = pytest.importorskip("numba_dpex", reason=reason)
        self.api = self.dpex.kernel_api

    def test_a_range(self, usm_type):
        @self.dpex.kernel
        def add(item, a, b, c):
            i = item.get_id(0)
            c[i] = a[i] + b[i]

        numbers = np.arange(1000, dtype="f4")
        (_, a), (_, b) = in_usm(numbers, usm_type), in_usm(numbers[::-1], usm_type)
        memory, c = in_usm(np.zeros_like(numbers), usm_type)
        self.dpex.call_kernel(add, self.dpex.Range(1000), a, b, c)
        assert np.array_equal(seen(memory, numbers), np.full(1000, 999, dtype="f4"))

    def test_a_range_of_two_dimensions(self):
        @self.dpex.kernel
        def number(item, a):
            i = item.get_id(0)
            j = item.get_id(1)
            a[i, j] = i * 10 + j

        zeros = np.zeros((7, 10), dtype="i8")
        memory, a = in_usm(zeros)
        self.dpex.call_kernel(number, self.dpex.Range(7, 10), a)
        assert np.array_equal(seen(memory, zeros).ravel(), np.arange(70))

    def test_groups_local_memory_and_barriers(self):
        api = self.api

        @self.dpex.kernel
        def group_sums(item: api.NdItem, x, out, local):
            own = item.get_local_id(0)
            group = item.get_group()
            local[own] = x[item.get_global_id(0)]
            api.group_barrier(group)
            if own == 0:
                total = np.float32(0)
                for k in range(64):
                    total += local[k]
                out[group.get_group_id(0)] = total

        numbers = np.arange(64 * 16, dtype="f4")
        _, x = in_usm(numbers)
        memory, out = in_usm(np.zeros(16, dtype="f4"))
        local = api.LocalAccessor(64, dtype=np.float32)
        groups = self.dpex.NdRange((64 * 16,), (64,))
        self.dpex.call_kernel(group_sums, groups, x, out, local)
        expected = numbers.reshape(16, 64).sum(axis=1)
        np.testing.assert_allclose(seen(memory, expected), expected)

    def test_atomics(self):
        api = self.api

        @self.dpex.kernel
        def count(item: api.Item, a):
            counter = api.AtomicRef(a, index=0)
            counter.fetch_add(1)

        zero = np.zeros(1, dtype="i8")
        memory, a = in_usm(zero)
        self.dpex.call_kernel(count, self.dpex.Range(10_000), a)
        assert seen(memory, zero)[0] == 10_000

    def test_dpjit(self):
        dpex = self.dpex

        @dpex.dpjit
        def scaled(a, b):
            return a * 2 + b

        numbers = np.arange(1000, dtype="f4")
        (_, a), (_, b) = in_usm(numbers), in_usm(np.ones_like(numbers))
        assert np.array_equal(dpnp.asnumpy(scaled(a, b)), numbers * 2 + 1)


def test_a_further_mapping_of_the_runtimes_file(fresh):
    """As a profiler's, or the checker's for the names of functions. The library is started as a program, which builds modules."""
    fresh(
        """
        import mmap, pathlib, zeusm.memory

        zeusm.memory.MemoryUSMShared(64)
        runtime = pathlib.Path(zeusm.memory.__file__).parent / "lib" / "libze_loader.so.1"
        with open(runtime, "rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

        import dpnp

        assert int((dpnp.ones(10) + 1).sum()) == 20
        """
    )


COMPILES = """
import os, signal

# The program sees a child when the process starts that builds modules.
children = []
signal.signal(signal.SIGCHLD, lambda number, _: children.append(number))
import zeusm
import dpnp, numpy as np

children.clear()
numbers = np.random.default_rng(1).integers(0, 1000, 10007, dtype="i4")
assert np.array_equal(dpnp.asnumpy(dpnp.sort(dpnp.asarray(numbers))), np.sort(numbers))
print(bool(children))
"""


@pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="the CPU runtime's cache")
@pytest.mark.once
def test_a_second_process_compiles_nothing(fresh, tmp_path):
    def compiles(**variables):
        environment = {"ZEUSM_CACHE_DIR": str(tmp_path / "cache")} | variables
        return fresh(COMPILES, env=environment).stdout == "True\n"

    assert compiles()
    kept = sorted((tmp_path / "cache").iterdir())
    assert kept
    assert not compiles()
    assert compiles(ZEUSM_CACHE_SIZE="0")
    assert sorted((tmp_path / "cache").iterdir()) == kept
    # By default in the user's home.
    assert compiles(ZEUSM_CACHE_DIR="", HOME=str(tmp_path))
    assert not compiles(ZEUSM_CACHE_DIR="", XDG_CACHE_HOME=str(tmp_path / ".cache"))
    assert not compiles(ZEUSM_CACHE_DIR="", HOME=str(tmp_path))


@pytest.mark.once
@pytest.mark.daily
@pytest.mark.parametrize("letter", "?H")
def test_a_module_that_crashes_the_optimiser_is_built_without(fresh, letter):
    """Intel's compiler crashes on the kernel that sorts bytes or words (`test_limits.py`), or does not end."""
    fresh(f"""
import os

os.environ["ZEUSM_COMPILER_SECONDS"] = "20"
os.environ["ZEUSM_CACHE_SIZE"] = "0"
import zeusm.memory
import numpy as np, dpnp

numbers = np.random.default_rng(1).integers(0, 2, 10007).astype("{letter}")
assert np.array_equal(dpnp.asnumpy(dpnp.sort(dpnp.asarray(numbers))), np.sort(numbers))
""")


INTERRUPTED = """
import os, signal
from pathlib import Path

import zeusm
import dpnp

MARK = b"MARK=" + os.environ["MARK"].encode()


def builders():
    # The processes that build modules, which have inherited the mark: a supervisor and the compiler.
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if int(path.parent.name) != os.getpid() and MARK in path.read_bytes().split(b"\\0"):
                yield int(path.parent.name)
        except OSError:  # It has ended.
            pass


one = dpnp.ones(4)
one + one
old = sorted(builders())
assert len(old) == 2
os.kill(old[1], signal.SIGSTOP)
print("stopped", flush=True)
failure = None
while not isinstance(failure, RuntimeError):
    try:
        try:
            dpnp.sin(one)
        finally:
            [None for _ in range(10)]
    except KeyboardInterrupt as interrupt:  # Without a failure, it was before the call.
        failure = interrupt.__context__
signal.signal(signal.SIGINT, signal.SIG_IGN)
assert abs(float(dpnp.sin(one)[0]) - 0.8415) < 0.001
while set(old) & set(builders()):
    pass
"""


@pytest.mark.once
def test_an_interrupt_ends_the_wait_for_a_module():
    """The compiler is stopped. It is ended, and a new one builds the same module."""
    environment = os.environ | {"MARK": str(os.getpid()), "ZEUSM_CACHE_SIZE": "0"}
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "stopped\n"
            while child.poll() is None:
                time.sleep(2)
                child.send_signal(signal.SIGINT)
            assert child.returncode == 0
        finally:
            child.kill()
