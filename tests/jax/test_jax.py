"""JAX on the CPU runtime, by Intel's plugin: each result is that of JAX's own CPU device."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zeusm

# isort: split
# oneDNN, which would compute products, begins with native code of a GPU.
os.environ["XLA_FLAGS"] = "--xla_gpu_gemm_rewrite_size_threshold=100000000000"
import jax
import jax.numpy as jnp
from jax import lax

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from documents import snippets

ONEAPI, CPU = jax.devices()[0], jax.devices("cpu")[0]
RANDOM = np.random.default_rng(1)
X = RANDOM.random(1000, dtype="f4")
M = RANDOM.random((48, 48), dtype="f4") + 48 * np.eye(48, dtype="f4")
S = M @ M.T
INTEGERS = RANDOM.integers(0, 1000, 777, dtype="i4")
# Work-groups of fewer work-items than a sub-group, and more.
LENGTHS = [1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 1000, 1024, 5000]


def test_the_device_is_that_of_zeusm():
    assert "oneapi" in str(ONEAPI)
    assert "zeusm" in ONEAPI.device_kind


def compare(function, *arguments, tolerance=2e-5):
    """Compares a function on both devices, compiled and not."""
    with jax.default_device(CPU):
        wanted = jax.tree.leaves(function(*(jnp.asarray(x) for x in arguments)))
    arguments = [jax.device_put(x, ONEAPI) for x in arguments]
    for made in (function, jax.jit(function)):
        for found, right in zip(jax.tree.leaves(made(*arguments)), wanted, strict=True):
            assert found.devices() == {ONEAPI}
            found, right = np.asarray(found), np.asarray(right)
            assert found.dtype == right.dtype
            assert found.shape == right.shape
            np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


ELEMENTWISE = [
    "abs",
    "add",
    "arctan2",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "multiply",
    "power",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
]
REDUCTIONS = [
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "argmax",
    "argmin",
    "any",
    "all",
    "cumsum",
    "cumprod",
    "median",
    "ptp",
]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    function = getattr(jnp, name)
    two = name in ("add", "arctan2", "maximum", "minimum", "multiply", "power", "subtract")
    compare(function, X + 0.5, *([X[::-1].copy()] if two else []))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    compare(
        getattr(jnp, name), X[:96].reshape(12, 8) if name.endswith("prod") else X, tolerance=1e-3
    )


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["f4", "i4", "f2"])
def test_sums_of_all_lengths(dtype, length):
    compare(jnp.sum, (np.arange(length) % 7).astype(dtype))
    compare(lambda x: jnp.max(x, axis=0), np.arange(length * 3).reshape(3, length).T.astype(dtype))
    compare(
        lambda x: jnp.sum(x, axis=1), (np.arange(length * 3) % 5).reshape(3, length).astype(dtype)
    )


MOVES = {
    "concatenate": lambda x: jnp.concatenate([x, x[::-1]]),
    "gather": lambda x: x[jnp.array([5, 3, 3, 900])],
    "scatter": lambda x: x.at[jnp.array([5, 3])].set(2.0),
    "scatter_add": lambda x: x.at[jnp.array([5, 3, 5])].add(2.0),
    "roll": lambda x: jnp.roll(x, 7),
    "transpose": lambda x: x.reshape(10, 100).T,
    "pad": lambda x: jnp.pad(x, (3, 4)),
    "where": lambda x: jnp.where(x > 0.5, x, -x),
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x), x[:50]),
    "broadcast": lambda x: x[:, None] * x[None, :20],
    "clip": lambda x: jnp.clip(x, 0.2, 0.4),
    "repeat": lambda x: jnp.repeat(x[:50], 3),
    "sort": jnp.sort,
    "argsort": jnp.argsort,
    "top_k": lambda x: lax.top_k(x, 10),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (17,), (40,)),
    "reduce_window": lambda x: lax.reduce_window(x, 0.0, lax.add, (5,), (1,), "VALID"),
    "bitcast": lambda x: lax.bitcast_convert_type(x, jnp.int32),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    compare(MOVES[name], X)


@pytest.mark.parametrize("name", ["unique", "bincount", "sort", "cumsum", "popcount"])
def test_integers(name):
    functions = {
        "unique": lambda x: jnp.unique(x, size=600),
        "bincount": lambda x: jnp.bincount(x, length=1000),
        "popcount": lax.population_count,
    }
    compare(functions.get(name) or getattr(jnp, name), INTEGERS)


LINALG = {
    "solve": lambda m: jnp.linalg.solve(m, m[0]),
    "inv": jnp.linalg.inv,
    "det": lambda m: jnp.linalg.slogdet(m),
    "qr": lambda m: (lambda q, r: q @ r)(*jnp.linalg.qr(m)),
    "svd": lambda m: jnp.linalg.svd(m, compute_uv=False),
    "matmul": lambda m: m @ m,
    "einsum": lambda m: jnp.einsum("ij,kj->ik", m, m),
    "batched": lambda m: jnp.stack([m, m]) @ jnp.stack([m, 2 * m]),
    "gemv": lambda m: m @ m[0],
    "triangular": lambda m: jax.scipy.linalg.solve_triangular(m, m[0]),
}


BFLOAT16 = {
    "arithmetic": lambda x: (x + x) * x - x / 3,
    "bits": lambda x: lax.bitcast_convert_type(
        lax.bitcast_convert_type(x, jnp.uint16) ^ 1, jnp.bfloat16
    ),
    "comparisons": lambda x: (x > 3, x == x[::-1], jnp.isnan(x / 0 * 0), jnp.where(x < 2, x, -x)),
    "exp": lambda x: (
        jnp.exp(-x),
        jnp.tanh(x),
        jnp.ldexp(x, 2),
        jnp.abs(3 - x),
        lax.clamp(x.dtype.type(1), x, x.dtype.type(3)),
    ),
    "from": lambda x: (x.astype("f4") * 3, x.astype("f2"), x.astype("i4"), x.astype("u1")),
    "gradient": lambda x: jax.grad(lambda y: jnp.sum(y * y))(x),
    "largest": lambda x: (jnp.max(x), jnp.argmax(jnp.sin(x)), jnp.sort(-x)),
    "product": lambda x: x[:48].reshape(6, 8) @ x[:48].reshape(8, 6),
    "scan": lambda x: lax.scan(lambda c, y: (c * jnp.bfloat16(0.5) + y, c), jnp.bfloat16(0), x)[1],
    "softmax": jax.nn.softmax,
    "sum": lambda x: (jnp.sum(x), jnp.cumsum(x[:8])),
    "to": lambda x: (jnp.arange(300).astype(x.dtype), jnp.float16(x).astype(x.dtype)),
}


@pytest.mark.parametrize("name", BFLOAT16)
def test_bfloat16(name):
    """Intel's OpenCL has no such type, so the runtime computes with float32; so does XLA."""

    def function(x):
        results = jax.tree.leaves(BFLOAT16[name](x.astype(jnp.bfloat16)))
        return [y.astype("f4") if y.dtype == jnp.bfloat16 else y for y in results]

    compare(function, X[:50] * 7 + 0.5, tolerance=2e-2)


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name):
    compare(LINALG[name], M, tolerance=2e-3)


def test_eigenvalues():
    compare(lambda m: jnp.linalg.eigh(m)[0] / 1000, S, tolerance=1e-3)


TRANSFORMS = {
    "grad": jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)),
    "value_and_grad": jax.value_and_grad(lambda x: jnp.dot(x, jnp.sin(x)) / 100),
    "vmap": jax.vmap(lambda x: jnp.sin(x) * 3),
    "scan": lambda x: lax.scan(lambda total, one: (total + one, total * one), 0.0, x),
    "while": lambda x: lax.while_loop(lambda s: jnp.sum(s) < 1e6, lambda s: s * 2 + 1, x),
    "cond": lambda x: lax.cond(jnp.sum(x) > 3, jnp.sin, jnp.cos, x),
    "fori": lambda x: lax.fori_loop(0, 10, lambda i, y: y * 0.5 + i, x),
    "map": lambda x: lax.map(jnp.exp, x[:20]),
    "jvp": lambda x: jax.jvp(jnp.sin, (x,), (x,)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    compare(TRANSFORMS[name], X, tolerance=1e-3)


def test_random_numbers_are_those_of_the_cpu():
    def draw():
        return jax.random.normal(jax.random.key(3), (1000,)), jax.random.bits(
            jax.random.key(4), (777,)
        )

    with jax.default_device(CPU):
        wanted = [np.asarray(x) for x in draw()]
    for found, right in zip(draw(), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(found), right, rtol=1e-5, atol=1e-5)


def test_donation():
    double = jax.jit(lambda x: x * 2, donate_argnums=0)
    given = jax.device_put(X, ONEAPI)
    assert np.array_equal(np.asarray(double(given)), X * 2)
    assert given.is_deleted()


def test_a_network_learns_the_same():
    def loss(weights, inputs, wanted):
        hidden = jnp.tanh(inputs @ weights[0] + weights[1])
        return jnp.mean((hidden @ weights[2] - wanted) ** 2)

    def train(device):
        random = np.random.default_rng(5)
        put = lambda *shape: jax.device_put(random.standard_normal(shape, dtype="f4") / 3, device)  # noqa: E731
        weights = [put(8, 16), put(16), put(16, 1)]
        inputs = put(64, 8)
        wanted = jnp.sin(jnp.sum(inputs, axis=1, keepdims=True))
        step = jax.jit(
            lambda w: [
                a - 0.05 * g for a, g in zip(w, jax.grad(loss)(w, inputs, wanted), strict=True)
            ]
        )
        losses = []
        for _ in range(50):
            losses.append(float(loss(weights, inputs, wanted)))
            weights = step(weights)
        return losses

    found, right = train(ONEAPI), train(CPU)
    assert right[-1] < right[0] / 2
    np.testing.assert_allclose(found, right, rtol=1e-4)


@pytest.mark.parametrize("kind", ["host", "shared", "device"])
def test_jax_takes_an_array_of_zeusm_in_place(kind):
    array = zeusm.asarray(np.arange(12, dtype="f4").reshape(3, 4), usm_type=kind)
    taken = jax.dlpack.from_dlpack(array)
    assert taken.unsafe_buffer_pointer() == array._pointer
    assert np.array_equal(
        np.asarray(jax.jit(lambda x: x * 2 + 1)(taken)), np.arange(12).reshape(3, 4) * 2 + 1
    )


def test_jax_takes_transposed_arrays_but_no_gaps():
    array = zeusm.asarray(np.arange(12, dtype="f4").reshape(3, 4), usm_type="shared")
    taken = jax.dlpack.from_dlpack(array.T)
    assert taken.unsafe_buffer_pointer() == array._pointer
    assert np.array_equal(taken, array.T.copy_to_host())
    with pytest.raises(jax.errors.JaxRuntimeError, match="striding"):
        jax.dlpack.from_dlpack(array[:, ::2])


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_numbers_are_exchanged_in_place(name):
    dtype = jnp.dtype(name)
    numbers = np.arange(1, 9).astype(dtype)
    array = zeusm.asarray(numbers, usm_type="shared")
    taken = jax.dlpack.from_dlpack(array)
    assert taken.dtype == dtype
    assert taken.unsafe_buffer_pointer() == array._pointer
    given = jax.device_put(numbers, ONEAPI)
    view = zeusm.from_dlpack(given)
    assert view.dtype == dtype
    assert view._pointer == given.unsafe_buffer_pointer()
    assert view.copy_to_host().tolist() == numbers.tolist()


def test_zeusm_takes_an_array_of_jax_in_place():
    given = jax.device_put(np.arange(12, dtype="f4").reshape(3, 4), ONEAPI) + 1
    array = zeusm.from_dlpack(given)
    assert array._pointer == given.unsafe_buffer_pointer()
    assert np.array_equal(array.copy_to_host(), np.arange(12).reshape(3, 4) + 1)
    assert np.array_equal(zeusm.asarray(given).copy_to_host(), np.asarray(given))


def test_another_process_opens_an_array_of_jax():
    """XLA cuts it from a larger allocation, in a context of its own."""
    given = jax.device_put(np.arange(100, dtype="f4"), ONEAPI) + 1
    memory = zeusm.from_dlpack(given).base
    program = (
        "import sys, zeusm.memory as zm\n"
        "with zm.IPCMemoryHandle.open(bytes.fromhex(sys.argv[1])) as memory:\n"
        "    print(memory.tobytes().hex())\n"
    )
    with memory.ipc_handle() as handle:
        assert handle.nbytes == given.nbytes
        command = [sys.executable, "-c", program, handle.to_bytes().hex()]
        read = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    assert bytes.fromhex(read.stdout) == np.asarray(given).tobytes()


@pytest.mark.parametrize(
    "code", [pytest.param(code, id=name) for code, name in snippets(of_jax=True)]
)
def test_snippet(code):
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_the_landscape_of_the_gallery(tmp_path):
    """JAX and dpnp on one array, without a wait."""
    root = Path(__file__).parents[2]
    picture = tmp_path / "picture.png"
    program = root / "examples" / "gallery" / "landscape.py"
    run = [sys.executable, program, picture]
    output = subprocess.run(run, check=True, timeout=300, capture_output=True, text=True).stdout
    assert output.startswith("one array of 160000 bytes")
    shown = root / "docs" / "_static" / "gallery" / "landscape.png"
    assert abs(picture.stat().st_size - shown.stat().st_size) < shown.stat().st_size / 10
