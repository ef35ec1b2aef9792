"""dpnp's functions that call oneMKL, on both devices of the CPU runtime, compared with NumPy."""

import ctypes
import inspect
import itertools
import os
import subprocess
import sys

import dpctl
import numpy as np
import pytest
import zeusm

# isort: split
import dpnp

# dpnp 0.15 raises deprecation warnings of its own.
pytestmark = pytest.mark.filterwarnings("default")

# test_several_devices.py presents a device of type CPU, for which oneMKL has code for processors, and runs this file there.
HAS_CPU = bool(dpctl.get_devices("level_zero", "cpu"))
DEVICE = "level_zero:cpu" if HAS_CPU else "level_zero:gpu"
RANDOM = np.random.default_rng(11)
SIZE = 37
MATRIX = RANDOM.standard_normal((SIZE, SIZE))
VECTOR = RANDOM.standard_normal(SIZE)
TALL = RANDOM.standard_normal((SIZE, 5))


def definite(x):
    """A positive definite matrix, so that it has an inverse and a Cholesky decomposition."""
    return x @ x.T.conj() + SIZE * np.eye(SIZE, dtype=x.dtype)


# Each function takes NumPy or dpnp, and the operands as arrays of it.
PROGRAMS = {
    "matrix product": (lambda xp, a, b: a @ b, MATRIX, TALL),
    "matrix by vector": (lambda xp, a, b: a @ b, MATRIX, VECTOR),
    "dot": (lambda xp, a, b: xp.dot(a, b), VECTOR, VECTOR),
    "fft": (lambda xp, a: xp.fft.fft(a), MATRIX),
    "ifft": (lambda xp, a: xp.fft.ifft(a), MATRIX),
    "rfft": (lambda xp, a: xp.fft.rfft(a), VECTOR),
    "inv": (lambda xp, a: xp.linalg.inv(a), definite(MATRIX)),
    "solve": (lambda xp, a, b: xp.linalg.solve(a, b), definite(MATRIX), VECTOR),
    "solve several": (lambda xp, a, b: xp.linalg.solve(a, b), definite(MATRIX), TALL),
    "cholesky": (lambda xp, a: xp.linalg.cholesky(a), definite(MATRIX)),
    "det": (lambda xp, a: xp.linalg.det(a), MATRIX),
    "eigvalsh": (lambda xp, a: xp.linalg.eigvalsh(a), definite(MATRIX)),
    "singular values": (lambda xp, a: xp.linalg.svd(a)[1], TALL),
    "pinv": (lambda xp, a: xp.linalg.pinv(a), TALL),
    "least squares by qr": (
        lambda xp, a: xp.matmul(xp.linalg.qr(a)[0], xp.linalg.qr(a)[1]),
        TALL,
    ),
}
TOLERANCE = {"f4": 2e-4, "f8": 1e-10, "c8": 2e-4, "c16": 1e-10}
CASES = [
    (program, dtype)
    for program in PROGRAMS
    for dtype in TOLERANCE
    if program != "rfft" or dtype.startswith("f")  # This transform is of real numbers.
]
# What oneMKL's code for GPUs refuses on a processor. To oneMKL of dpnp 0.15 the device is an unknown GPU; where it refuses a
# transform, the process ends.
REFUSED = [("cholesky", "f4", "level_zero:cpu"), ("cholesky", "f8", "level_zero:cpu")]
HAS_DPNP_15 = dpnp.__version__.startswith("0.15")
ON_GPU = [case for case in CASES if case not in [(program, dtype) for program, dtype, _ in REFUSED]]


def marks(program, dtype):
    """The compilation of the inverse and of solvers takes up to a minute for each type."""
    takes_long = program.startswith(("inv", "solve")) and dtype != "c8"
    return [pytest.mark.once, *([pytest.mark.daily] if takes_long else [])]


on_cpu = pytest.mark.skipif(not HAS_CPU, reason="on a device of type CPU: test_several_devices.py")
on_gpu = pytest.mark.skipif(
    HAS_CPU or HAS_DPNP_15, reason="it is not refused, or in a way that may end the process"
)


@pytest.mark.parametrize(
    ("program", "dtype"),
    CASES
    if HAS_CPU
    else [pytest.param(*case, marks=marks(*case)) for case in ON_GPU if not HAS_DPNP_15],
)
def test_the_answer_is_numpys(program, dtype):
    function, *operands = PROGRAMS[program]
    operands = [operand.astype(dtype) for operand in operands]
    # zeusm's memory is the operand, without a copy.
    shared = [zeusm.asarray(operand, usm_type="shared", device=DEVICE) for operand in operands]
    arrays = [dpnp.from_dlpack(array) for array in shared]
    for array, ours in zip(arrays, shared, strict=True):
        assert array.get_array()._pointer == ours._pointer
    found = dpnp.asnumpy(function(dpnp, *arrays))
    expected = function(np, *operands)
    assert found.shape == expected.shape
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    # The operands are unchanged.
    for operand, ours in zip(operands, shared, strict=True):
        assert np.array_equal(ours.copy_to_host(), operand)


@on_gpu
@pytest.mark.once
@pytest.mark.parametrize(("program", "dtype", "reason"), REFUSED)
def test_what_a_processor_cannot_run_is_refused(program, dtype, reason):
    """The rows of docs/limits.md on oneMKL are obsolete where this fails."""
    function, *operands = PROGRAMS[program]
    operands = [dpnp.asarray(operand.astype(dtype)) for operand in operands]
    with pytest.raises(RuntimeError, match=reason):
        function(dpnp, *operands)


# The compilation of each length and type takes seconds: these are enough for each change.
OFTEN = {(48, "f4"), (251, "c16"), (1024, "c8")}
LENGTHS = [
    pytest.param(length, dtype, marks=[] if (length, dtype) in OFTEN else pytest.mark.daily)
    for length, dtype in itertools.product([2, 48, 128, 251, 300, 1024], TOLERANCE)
]


@on_gpu
@pytest.mark.once
@pytest.mark.parametrize(("length", "dtype"), LENGTHS)
def test_transforms_of_all_kinds_of_lengths(length, dtype):
    """oneMKL writes a kernel for each length: of one sub-group or several, with up to four factors, or of Bluestein for primes."""
    x = (RANDOM.standard_normal((2, length)) + 1j * RANDOM.standard_normal((2, length))).astype(
        dtype if dtype.startswith("c") else dtype.replace("f4", "c8").replace("f8", "c16")
    )
    x = x if dtype.startswith("c") else x.real.copy()
    programs = [lambda xp, a: xp.fft.fft2(a)]
    if dtype.startswith("f"):
        programs.append(lambda xp, a: xp.fft.rfft(a))
        programs.append(lambda xp, a: xp.fft.irfft(a, length))
    array = dpnp.asarray(x, device=DEVICE)
    for program in programs:
        found, expected = dpnp.asnumpy(program(dpnp, array)), program(np, x)
        np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype] * length)


def test_what_compiles_the_transforms_is_no_sycl_device():
    assert not dpctl.get_devices("opencl", "gpu")


def announced():
    """The variable as the C library has it: `os.environ` is from the start of the process."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    return getenv(b"OCL_ICD_FILENAMES").decode()


def test_other_programs_do_not_load_the_runtime():
    """OpenCL's loader finds the runtime in this process only."""
    code = """
import ctypes, sys
opencl = ctypes.CDLL(sys.prefix + "/lib/libOpenCL.so.1")
opencl.clGetPlatformIDs(0, None, ctypes.byref(ctypes.c_uint()))
assert "zeusm" not in open("/proc/self/maps").read()
"""
    environment = os.environ | {"LD_LIBRARY_PATH": sys.prefix + "/lib"}
    environment["OCL_ICD_FILENAMES"] = announced()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@on_gpu
@pytest.mark.once
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_program_that_does_not_import_zeusm_has_fourier_transforms(command):
    """SYCL's adapter for OpenCL is loaded before the runtime is initialised, and OpenCL's loader with it."""
    code = "import dpnp; print(dpnp.asnumpy(dpnp.fft.fft(dpnp.ones(4, dtype='f4'))).real.tolist())"
    line = [sys.executable, "-m", "zeusm", command, sys.executable, "-c", code]
    run = subprocess.run(line, capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("[4.0, 0.0, 0.0, 0.0]\n", 0), run.stderr


def test_a_forks_child_has_the_name_in_the_place_of_its_parents():
    """The child writes the environment's bytes: another thread may have had the lock at the fork."""
    program = f"""
import ctypes, os, re, zeusm
zeusm.runtime()
{inspect.getsource(announced)}
first = announced()
for _ in range(2):
    if os.fork():
        os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
assert len(announced()) == len(first)
numbers = re.findall("/proc/self/task/+([0-9]+)/root", announced())
assert int(numbers[-1]) == os.getpid()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@on_gpu
@pytest.mark.once
def test_transforms_in_a_forks_child():
    """It is the first of the two that uses OpenCL."""
    code = """
import os, zeusm, dpnp, numpy as np
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
x = np.arange(16.0)
assert np.allclose(dpnp.asnumpy(dpnp.fft.fft(dpnp.asarray(x))), np.fft.fft(x))
"""
    subprocess.run([sys.executable, "-c", "import sys" + code], check=True)


@on_cpu
def test_short_transforms():
    """For some lengths dpnp 0.15 launches a kernel of no work-items beside oneMKL's function."""
    for size in range(1, 9):
        x = RANDOM.standard_normal((size, size))
        found = dpnp.asnumpy(dpnp.fft.fft(dpnp.asarray(x, device=DEVICE)))
        np.testing.assert_allclose(found, np.fft.fft(x), atol=1e-12)


@on_cpu
def test_a_matrix_without_inverse_is_an_error():
    singular = dpnp.ones((4, 4), device=DEVICE)
    with pytest.raises(dpnp.linalg.LinAlgError):
        dpnp.linalg.inv(singular)
    with pytest.raises(dpnp.linalg.LinAlgError):
        dpnp.linalg.solve(singular, singular[0])


@on_cpu
def test_results_feed_kernels_and_zeusms_copies():
    """oneMKL computes in host tasks: kernels and copies of the same queue wait for them."""
    x = dpnp.asarray(MATRIX, device=DEVICE)
    expected = MATRIX
    for _ in range(20):
        x = dpnp.matmul(x, x) / SIZE
        expected = expected @ expected / SIZE
        np.testing.assert_allclose(zeusm.as_usm_array(x).copy_to_host(), expected, atol=1e-8)
        x, expected = dpnp.tanh(x), np.tanh(expected)
