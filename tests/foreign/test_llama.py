"""llama.cpp's SYCL backend (cyllama-sycl) on the CPU runtime: ggml's operations, and a small model, beside ggml's CPU backend."""

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import cyllama
import cyllama.llama.llama_cpp as llama
import gguf
import numpy as np
import pytest

LIBRARIES = Path(cyllama.__file__).parents[1] / "cyllama_sycl.libs"
llama.ggml_backend_load_all()
POINTER, INT, INT64, SIZE, FLOAT = (
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_size_t,
    ctypes.c_float,
)
#: ggml's numbers of types.
TYPES = {"float32": 0, "float16": 1, "int32": 26, "int64": 27}
RANDOM = np.random.default_rng(1)


class InitParameters(ctypes.Structure):
    """ggml_init_params"""

    _fields_ = [("size", SIZE), ("buffer", POINTER), ("no_alloc", ctypes.c_bool)]


class Library:
    """ggml's functions with the types of their arguments: `ggml("add", POINTER, POINTER, POINTER)`."""

    def __init__(self):
        self.libraries = [ctypes.CDLL(str(file)) for file in LIBRARIES.glob("libggml*.so.*")]

    def __call__(self, name, result, *arguments):
        for library in self.libraries:
            with contextlib.suppress(AttributeError):
                function = getattr(library, f"ggml_{name}")
                function.restype, function.argtypes = result, arguments
                return function
        raise AttributeError(name)


GGML = Library()
INIT = GGML("init", POINTER, InitParameters)
FREE = GGML("free", None, POINTER)
NEW_TENSOR = GGML("new_tensor", POINTER, POINTER, INT, INT, POINTER)
NEW_GRAPH = GGML("new_graph", POINTER, POINTER)
EXPAND = GGML("build_forward_expand", None, POINTER, POINTER)
ALLOCATE = GGML("backend_alloc_ctx_tensors", POINTER, POINTER, POINTER)
FREE_BUFFER = GGML("backend_buffer_free", None, POINTER)
COMPUTE = GGML("backend_graph_compute", INT, POINTER, POINTER)
SET = GGML("backend_tensor_set", None, POINTER, POINTER, SIZE, SIZE)
GET = GGML("backend_tensor_get", None, POINTER, POINTER, SIZE, SIZE)
BYTES = GGML("nbytes", SIZE, POINTER)
SUPPORTS = GGML("backend_supports_op", ctypes.c_bool, POINTER, POINTER)
BACKEND = GGML("backend_init_by_name", POINTER, ctypes.c_char_p, POINTER)
SYCL, CPU = BACKEND(b"SYCL0", None), BACKEND(b"CPU", None)


def test_the_device_is_that_of_zeusm():
    device = GGML("backend_get_device", POINTER, POINTER)(SYCL)
    name = GGML("backend_dev_description", ctypes.c_char_p, POINTER)(device)
    assert name.decode().startswith("zeusm CPU runtime")


def operation(name, *arguments):
    """A function of ggml that makes a tensor of tensors; `arguments` are those behind the context."""
    return GGML(name, POINTER, POINTER, *arguments)


def computed(backend, build, arrays, dtype):
    """What a backend makes of arrays; `build` makes the result's tensor of their tensors."""
    context = INIT(InitParameters(16 << 20, None, True))
    tensors = []
    for array in arrays:
        shape = (INT64 * array.ndim)(*reversed(array.shape))
        tensors.append(NEW_TENSOR(context, TYPES[array.dtype.name], array.ndim, shape))
    result, graph = build(context, *tensors), NEW_GRAPH(context)
    EXPAND(graph, result)
    assert SUPPORTS(backend, result)
    buffer = ALLOCATE(context, backend)
    for tensor, array in zip(tensors, arrays, strict=True):
        SET(tensor, np.ascontiguousarray(array).ctypes.data, 0, array.nbytes)
    assert COMPUTE(backend, graph) == 0
    found = np.empty(BYTES(result), "u1")
    GET(result, found.ctypes.data, 0, found.nbytes)
    FREE_BUFFER(buffer)
    FREE(context)
    return found.view(dtype).astype("f8")


def compare(build, *arrays, dtype="f4", tolerance=1e-2):
    """ggml's products have float16 in between, so that differences are relative to the greatest number."""
    found, right = (computed(backend, build, arrays, dtype) for backend in (SYCL, CPU))
    assert np.isfinite(right).all()
    assert np.abs(found - right).max() <= tolerance * np.abs(right).max()


def normal(*shape, dtype="f4"):
    return RANDOM.standard_normal(shape).astype(dtype)


PRODUCT = operation("mul_mat", POINTER, POINTER)
PERMUTE = operation("permute", POINTER, INT, INT, INT, INT)
SOFTMAX = operation("soft_max_ext", POINTER, POINTER, FLOAT, FLOAT)
ATTENTION = operation("flash_attn_ext", *[POINTER] * 4, FLOAT, FLOAT, FLOAT)
ROPE = operation("rope", POINTER, POINTER, INT, INT)
RMS_NORM = operation("rms_norm", POINTER, FLOAT)
LENGTHS = [16, 32, 64, 100, 320, 512, 513, 640, 1000, 1024, 4096]


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("rows", [1, 2, 7, 32, 100])
@pytest.mark.parametrize("length", [32, 64, 256, 1000])
def test_products(length, rows, dtype):
    compare(PRODUCT, normal(48, length, dtype=dtype), normal(rows, length))


def test_products_of_several_matrices():
    compare(PRODUCT, normal(4, 16, 32), normal(4, 7, 32))
    compare(PRODUCT, normal(4, 16, 256, dtype="f2"), normal(4, 7, 256))


# Above 512 elements ggml writes behind its local memory, which the runtime rounds up, as a GPU does.
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["norm", "rms_norm", "soft_max", "sum_rows", "argmax"])
def test_rows(name, length):
    scalars = [FLOAT] if name.endswith("norm") else []
    function = operation(name, POINTER, *scalars)
    compare(
        lambda context, x: function(context, x, *[1e-5] * len(scalars)),
        normal(5, length),
        dtype="i4" if name == "argmax" else "f4",
    )


@pytest.mark.parametrize("length", [n for n in LENGTHS if n <= 1024])
def test_orders(length):
    sort = operation("argsort", POINTER, INT)
    compare(lambda context, x: sort(context, x, 0), normal(5, length), dtype="i4", tolerance=0)


@pytest.mark.parametrize("name", ["relu", "silu", "gelu", "tanh", "sigmoid", "sqr", "abs"])
def test_functions(name):
    compare(operation(name, POINTER), normal(5, 64))


def test_operands_of_different_shapes():
    compare(operation("add", POINTER, POINTER), normal(5, 64), normal(5, 64))
    compare(operation("mul", POINTER, POINTER), normal(5, 64), normal(64))
    compare(operation("swiglu_split", POINTER, POINTER), normal(5, 64), normal(5, 64))


def test_rows_are_read_and_written_by_their_numbers():
    rows = np.array([3, 1, 8])
    compare(operation("get_rows", POINTER, POINTER), normal(9, 64), rows.astype("i4"))
    write = operation("set_rows", POINTER, POINTER, POINTER)
    compare(write, normal(9, 64), normal(3, 64), rows)
    half = normal(9, 64, dtype="f2")
    compare(write, half, normal(3, 64), rows, dtype="f2")


def test_transposed_and_permuted_tensors_are_made_contiguous():
    contiguous, transpose = operation("cont", POINTER), operation("transpose", POINTER)
    compare(lambda c, x: contiguous(c, transpose(c, x)), normal(33, 65))
    compare(lambda c, x: contiguous(c, PERMUTE(c, x, 0, 2, 1, 3)), normal(4, 7, 16))
    cast = operation("cast", POINTER, INT)
    compare(lambda c, x: cast(c, x, TYPES["float16"]), normal(5, 64), dtype="f2")


@pytest.mark.parametrize("size", [16, 64, 128])
def test_rotations(size):
    places = np.arange(5, 12, dtype="i4")
    compare(lambda c, x, p: ROPE(c, x, p, size, 0), normal(7, 4, size), places)


@pytest.mark.parametrize("length", [32, 64, 256])
@pytest.mark.parametrize("rows", [1, 7])
def test_softmax_with_a_mask(rows, length):
    mask = np.where(np.arange(length) <= np.arange(rows)[:, None] + 3, 0, -np.inf)
    for dtype in ("f4", "f2"):
        compare(
            lambda c, x, m: SOFTMAX(c, x, m, 0.25, 0.0),
            normal(4, rows, length),
            mask.astype(dtype),
        )


def attend(rows, length):
    """Attention of 2 heads of 64; Intel's compiler takes minutes for heads of 128."""
    compare(
        lambda c, q, k, v: ATTENTION(c, q, k, v, None, 0.125, 0.0, 0.0),
        normal(2, rows, 64),
        normal(2, length, 64, dtype="f2"),
        normal(2, length, 64, dtype="f2"),
    )


@pytest.mark.parametrize(("rows", "length"), [(1, 64), (1, 256), (7, 64), (7, 256), (40, 256)])
def test_flash_attention(rows, length):
    attend(rows, length)


def test_norms_without_optimisation_are_wrong():
    tests = [f"{__file__}::test_rows[norm-{length}]" for length in LENGTHS[:4]]
    variables = os.environ | {"SYCL_PROGRAM_COMPILE_OPTIONS": "-ze-opt-disable"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:dash", *tests]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert f"{len(tests)} failed" in run.stdout


@pytest.mark.xfail(
    strict=True, reason="docs/limits.md: ggml leaves the operand's strides to oneDNN"
)
def test_a_product_of_a_permuted_operand():
    swapped = lambda c, x: PERMUTE(c, x, 0, 2, 1, 3)  # noqa: E731
    compare(
        lambda c, k, q: PRODUCT(c, swapped(c, k), swapped(c, q)),
        normal(64, 4, 16, dtype="f2"),
        normal(7, 4, 16),
    )


VOCABULARY, WIDTH, LAYERS, HEADS, HIDDEN = 320, 128, 2, 2, 256


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A file with a model of two layers and random weights."""
    path = tmp_path_factory.mktemp("model") / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"<{number}>" for number in range(VOCABULARY)])
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([gguf.TokenType.UNKNOWN] + [gguf.TokenType.NORMAL] * (VOCABULARY - 1))
    shapes = {
        "token_embd": (VOCABULARY, WIDTH),
        "output": (VOCABULARY, WIDTH),
        "output_norm": WIDTH,
    }
    for layer in range(LAYERS):
        block = {f"attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
        block |= {"attn_norm": WIDTH, "ffn_norm": WIDTH, "ffn_down": (WIDTH, HIDDEN)}
        block |= {"ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    for name, shape in shapes.items():
        weights = np.ones(shape, "f4") if isinstance(shape, int) else normal(*shape) * 0.2
        writer.add_tensor(f"{name}.weight", weights.astype("f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def logits(path, layers, prompt):
    """What a model says of the token that follows a prompt, with some of its layers on the device."""
    options = llama.LlamaModelParams()
    options.n_gpu_layers = layers
    loaded = llama.LlamaModel(str(path), options)
    options = llama.LlamaContextParams()
    options.n_ctx, options.flash_attn_type = 256, 1  # enabled: no product of a permuted operand
    context = llama.LlamaContext(loaded, options)
    context.decode(llama.llama_batch_get_one(prompt, 0))
    found = np.array(context.get_logits_ith(-1))
    context.close()
    loaded.close()
    return found


@pytest.mark.parametrize("length", [7, 20, 100])
def test_a_model_reads_a_prompt_as_on_the_cpu(model, length):
    prompt = [int(token) for token in RANDOM.integers(0, VOCABULARY, length)]
    right = logits(model, 0, prompt)
    assert np.isfinite(right).all()
    for layers in (1, 2, 99):
        found = logits(model, layers, prompt)
        assert np.abs(found - right).max() <= 2e-2 * np.abs(right).max()
