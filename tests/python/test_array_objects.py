"""Arrays as Python objects: numbers, iteration, assignment, copies and pickles, beside NumPy."""

import copy
import io
import operator
import pickle
import time

import numpy as np
import pytest
import zeusm
import zeusm.memory
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.once

CONVERSIONS = [bool, int, float, complex, operator.index]
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"]
BINARY += ["lshift", "rshift", "iadd", "imul"]
SAMPLES = {
    "number": np.float32(2.5),
    "integer": np.int64(3),
    "zero": np.float64(0),
    "flag": np.True_,
    "complex": np.complex64(1 + 2j),
    "one element": np.array([0.0]),
    "one element, two dimensions": np.array([[7]]),
    "many": np.arange(3.0),
    "none": np.empty(0),
    "none, two dimensions": np.empty((2, 0), "i4"),
}


def outcome(function, *arguments):
    """The result, or the class and the message of the exception."""
    try:
        return function(*arguments)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore")  # NumPy warns where its rules are about to change.
@pytest.mark.parametrize("convert", CONVERSIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("name", SAMPLES)
def test_conversions_are_numpys(usm_type, name, convert):
    sample = np.asarray(SAMPLES[name])
    array = zeusm.asarray(sample, usm_type=usm_type)
    expected = outcome(convert, sample)
    assert outcome(convert, array) == expected
    if not isinstance(expected, tuple):
        assert type(convert(array)) is type(expected)


def test_a_conversion_of_many_elements_copies_none(usm_type):
    """The error has to come before the elements are copied."""
    array = zeusm.empty((1 << 20, 1 << 10), "f8", usm_type=usm_type)[::, :1]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(array)


def test_iteration(usm_type):
    source = np.arange(6, dtype="i4").reshape(3, 2)
    array = zeusm.asarray(source, usm_type=usm_type)
    assert [row.copy_to_host().tolist() for row in array] == source.tolist()
    assert [int(item) for item in array[:, 0]] == [0, 2, 4]
    with pytest.raises(TypeError, match="0-d"):
        iter(array[0, 0])


def test_elements_are_not_compared(usm_type):
    """`==` is the identity, and nothing pretends to search."""
    array = zeusm.asarray([1.0, 2.0], usm_type=usm_type)
    assert array == array
    assert array != zeusm.asarray(array, copy=True)
    assert hash(array) == hash(array)
    with pytest.raises(TypeError, match="compare"):
        1.0 in array  # noqa: B015


LAYOUTS = {
    "C": np.s_[:],
    "F": np.s_[:],
    "offset": np.s_[1:],
    "strided": np.s_[::2, ::3],
    "negative": np.s_[::-1, ::-1],
    "row": np.s_[1],
    "no elements": np.s_[1:1],
    "number": np.s_[2, 3],
}


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture
def source(layout):
    whole = np.arange(24, dtype="f4").reshape(4, 6)
    return np.asarray(whole, order="F" if layout == "F" else "C")


@pytest.fixture
def array(source, usm_type, layout):
    return zeusm.asarray(source, usm_type=usm_type)[LAYOUTS[layout]]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(array, protocol):
    again = pickle.loads(pickle.dumps(array, protocol))
    assert (again.usm_type, again.dtype, again.shape) == (array.usm_type, array.dtype, array.shape)
    assert again.sycl_device == array.sycl_device
    np.testing.assert_array_equal(again.copy_to_host(), array.copy_to_host())
    # The memory has the elements only.
    assert again.base.nbytes == max(array.nbytes, array.itemsize)
    if array.nbytes:
        assert again._pointer != array._pointer


@pytest.mark.parametrize("usm_type", ["shared", "host"])
@pytest.mark.parametrize("layout", ["C", "F", "offset", "negative"])
def test_an_out_of_band_pickle_copies_nothing(array):
    buffers = []
    data = pickle.dumps(array, 5, buffer_callback=buffers.append)
    assert len(data) < 500
    (buffer,) = (memoryview(buffer) for buffer in buffers)
    assert buffer.nbytes == array.nbytes
    array[...] = 7  # The buffer is the memory itself.
    assert np.frombuffer(buffer, "f4").tolist() == [7] * array.size
    again = pickle.loads(data, buffers=buffers)
    np.testing.assert_array_equal(again.copy_to_host(), array.copy_to_host())


def test_a_pickle_of_another_version_is_refused():
    rebuild, state = zeusm.empty(3).__reduce_ex__(5)
    with pytest.raises(ValueError, match="version 2"):
        rebuild(2, *state[1:])
    with pytest.raises((TypeError, ValueError)):
        rebuild(state[0])


def test_a_pickle_cut_short_is_refused():
    data = pickle.dumps(zeusm.asarray(np.arange(100.0)), 5)
    for length in range(0, len(data) - 1, 7):
        with pytest.raises((pickle.UnpicklingError, EOFError)):
            pickle.load(io.BytesIO(data[:length]))


def test_a_forged_layout_is_refused():
    rebuild, state = zeusm.asarray(np.arange(4.0)).__reduce_ex__(5)
    version, memory, typestr, *_ = state
    for shape, strides, offset in (
        ((5,), (1,), 0),
        ((4,), (2,), 0),
        ((4,), (1,), 1),
        ((4,), (-1,), 0),
    ):
        with pytest.raises(ValueError, match="touches bytes"):
            rebuild(version, memory, typestr, shape, strides, offset)


@pytest.mark.parametrize("key", [0, slice(2), "x", ...])
def test_deletion_is_refused_as_by_its_models(memory_class, key):
    array = zeusm.asarray(np.arange(4.0))
    for deleted, model, error in [
        (array, np.arange(4.0), ValueError),
        (memory_class(4), memoryview(bytearray(4)), TypeError),
    ]:
        with pytest.raises(error) as expected:
            del model[key]
        with pytest.raises(error, match=str(expected.value)):
            del deleted[key]
    assert array.copy_to_host().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_copies(array, make):
    again = make(array)
    assert (again.usm_type, again.shape, again.dtype) == (array.usm_type, array.shape, array.dtype)
    assert again.sycl_queue == array.sycl_queue
    np.testing.assert_array_equal(again.copy_to_host(), array.copy_to_host())
    before = array.copy_to_host()
    again[...] = 99
    np.testing.assert_array_equal(array.copy_to_host(), before)


VALUES = {
    "number": lambda shape: 5,
    "NumPy's number": lambda shape: np.float64(1.5),
    "array": lambda shape: np.random.default_rng(1).random(shape).astype("f4"),
    "array of another type": lambda shape: np.arange(np.prod(shape, dtype=int)).reshape(shape),
    "repeated row": lambda shape: np.arange(shape[-1], dtype="f4") if shape else 1,
    "list": lambda shape: np.ones(shape[-1:]).tolist(),
}


@pytest.mark.parametrize("value", VALUES)
def test_assignment_is_numpys(source, usm_type, layout, value):
    key = LAYOUTS[layout]
    array = zeusm.asarray(source, usm_type=usm_type)
    value = VALUES[value](source[key].shape)
    expected = source.copy()
    expected[key] = value
    array[key] = value
    np.testing.assert_array_equal(array.copy_to_host(), expected)


@pytest.fixture(params=["device", "shared", "host"])
def value_kind(request):
    return request.param


def test_assignment_of_usm(source, usm_type, layout, value_kind):
    key = LAYOUTS[layout]
    array = zeusm.asarray(source, usm_type=usm_type)
    values = np.asarray(-source[key] - 1, "f4")
    expected = source.copy()
    expected[key] = values
    for usm in (
        zeusm.asarray(values, usm_type=value_kind),
        zeusm.asarray(np.asarray(values).T.copy(), usm_type=value_kind).T,
    ):
        array[...] = 0
        array[...] = source
        array[key] = usm
        np.testing.assert_array_equal(array.copy_to_host(), expected)


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (1, 5), (4, 1), (3, 1, 1), (1, 1, 4, 5), (1, 3, 1, 5)]
)
def test_usm_is_broadcast(usm_type, value_kind, shape):
    values = np.arange(-7, np.prod(shape, dtype=int) - 7, dtype="f4").reshape(shape)
    for key in (np.s_[...], np.s_[::-1], np.s_[:, 1:, ::1]):
        expected = np.zeros((3, 4, 5), "f4")
        array = zeusm.asarray(expected, usm_type=usm_type)
        try:
            expected[key] = values
        except ValueError:
            with pytest.raises(ValueError, match="broadcast"):
                array[key] = zeusm.asarray(values, usm_type=value_kind)
        else:
            array[key] = zeusm.asarray(values, usm_type=value_kind)
        np.testing.assert_array_equal(array.copy_to_host(), expected)
    array[:] = array[0, 0]
    np.testing.assert_array_equal(array.copy_to_host(), np.broadcast_to(expected[0, 0], (3, 4, 5)))


def test_overlapping_assignment(usm_type):
    for target, value in (np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[:], np.s_[::-1]):
        expected = np.arange(1000)
        array = zeusm.asarray(expected, usm_type=usm_type)
        expected[target] = expected[value].copy()
        array[target] = array[value]
        np.testing.assert_array_equal(array.copy_to_host(), expected)


def test_assignment_from_another_context(usm_type):
    import dpctl

    device = dpctl.SyclDevice("level_zero:gpu")
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    value = zeusm.asarray(np.arange(6).reshape(2, 3)[:, ::-1], queue=queue)
    array = zeusm.asarray(np.zeros((2, 6), int), usm_type=usm_type)
    array[:, ::2] = value
    assert array.copy_to_host().tolist() == [[2, 0, 1, 0, 0, 0], [5, 0, 4, 0, 3, 0]]


KEYS_OF_MANY_ROWS = [
    np.s_[::-1],
    np.s_[:, ::-1],
    np.s_[::-1, ::-1, ::-1],
    np.s_[::2, ::-2, 1:],
    np.s_[:, ::-1, 1],
    np.s_[:, ::-1, ::2],
]


@pytest.mark.parametrize("key", KEYS_OF_MANY_ROWS, ids=str)
@pytest.mark.parametrize("dtype", ["u1", "c16", [("a", "i2"), ("b", "f8")]], ids=str)
class TestManyRows:
    """A device would execute an operation for few bytes each: they are copied through host memory."""

    @pytest.fixture
    def source(self, dtype):
        size = np.dtype(dtype).itemsize
        data = np.random.default_rng(0).integers(0, 128, 90 * 100 * 3 * size, "u1")
        return data.view(dtype).reshape(90, 100, 3)

    def test_assignment(self, source, usm_type, value_kind, key):
        values = source[::-1, :, ::-1][key]
        array = zeusm.asarray(source, usm_type=usm_type)
        array[key] = zeusm.asarray(values, usm_type=value_kind)
        expected = source.copy()
        expected[key] = values
        np.testing.assert_array_equal(array.copy_to_host(), expected)

    def test_assignment_to_itself(self, source, usm_type, key):
        array = zeusm.asarray(source, usm_type=usm_type)
        array[key] = array[::-1][key]
        expected = source.copy()
        expected[key] = source[::-1][key]
        np.testing.assert_array_equal(array.copy_to_host(), expected)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_copies_in_order(self, source, usm_type, value_kind, key, order):
        array = zeusm.asarray(source, usm_type=usm_type)[key]
        same = zeusm.asarray(array, usm_type=value_kind, order=order, copy=True)
        assert {"C": same.c_contiguous, "F": same.f_contiguous}[order]
        np.testing.assert_array_equal(same.copy_to_host(), source[key])

    def test_copies_to_another_context(self, source, usm_type, key):
        import dpctl

        device = dpctl.SyclDevice("level_zero:gpu")
        queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        array = zeusm.asarray(source, usm_type=usm_type)[key]
        same = zeusm.asarray(array, queue=queue, order="C")
        assert same.sycl_context == queue.sycl_context
        np.testing.assert_array_equal(same.copy_to_host(), source[key])


def test_reversed_elements_are_not_copied_one_by_one(usm_type):
    """An operation for each element took a thousand times as long."""

    def duration(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    source = zeusm.asarray(np.arange(1 << 18, dtype="i4"), usm_type=usm_type)
    target = zeusm.empty(source.shape, "i4", usm_type=usm_type)
    straight = min(duration(lambda: target.__setitem__(..., source)) for _ in range(5))
    for call in (
        lambda: target.__setitem__(np.s_[::-1], source),
        lambda: zeusm.asarray(source[::-1], order="C"),
    ):
        assert min(duration(call) for _ in range(5)) < 200 * straight


def test_reversed_elements_are_copied_without_host_memory(fresh):
    fresh("""
        import resource, numpy, zeusm

        numbers = numpy.arange(1 << 22, dtype="u8")
        source, target = zeusm.asarray(numbers), zeusm.empty(numbers.shape, "u8")
        target[:1000] = source[999::-1]
        target[...] = source
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        unlimited = resource.RLIM_INFINITY
        # Half of a copy in host memory, and enough for the stacks of threads that begin now.
        resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), unlimited))
        target[...] = source[::-1]
        resource.setrlimit(resource.RLIMIT_AS, (unlimited, unlimited))
        assert (target.copy_to_host() == numbers[::-1]).all()
    """)


@pytest.mark.parametrize("shape", [(3 << 20,), (1, 3 << 20), (1500, 1000), (3, 1, 1 << 20)])
def test_assignment_in_parts(usm_type, shape):
    """Host data beyond the size of the staging buffer."""
    array = zeusm.empty(shape, "f4", usm_type=usm_type)
    array[...] = 4
    assert (array.copy_to_host() == 4).all()
    row = np.arange(shape[-1], dtype="f4")
    array[...] = row
    assert (array.copy_to_host() == row).all()


SEQUENCES = {
    "large integer": [300],
    "complex numbers": [1 + 2j],
    "rounded by float64": [1.0, 2**60 + 1],
    "dimensions of size 1": np.ones((1, 1, 1, 2)),
    "too many dimensions": np.ones((2, 1, 1, 2)),
    "numbers in words": ["1", b"2"],
}


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
@pytest.mark.parametrize("length", [2, 21 << 17], ids=["small", "staged in parts"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_converted_by_numpys_rules(usm_type, dtype, length, name):
    """NumPy converts a sequence for the type of the target: it does not guess another one, and does not wrap numbers."""
    expected = np.zeros((length, 2), dtype)
    array = zeusm.asarray(expected, usm_type=usm_type)

    def assign(to):
        to[...] = SEQUENCES[name]

    # The texts differ, as NumPy's own do between its functions.
    answers = [outcome(assign, it) for it in (expected, array)]
    assert len({answer and answer[0] for answer in answers}) == 1, answers
    np.testing.assert_array_equal(array.copy_to_host(), expected)


def test_refused_assignments(usm_type):
    array = zeusm.asarray(np.arange(4, dtype="u1"), usm_type=usm_type)
    for key, value, error in [
        (np.s_[9], 1, IndexError),
        (np.s_[:, 0], 1, IndexError),
        (np.s_[:], [1, 2, 3], ValueError),
        (np.s_[:], 256, OverflowError),
        (np.s_[:], "word", ValueError),
        (np.s_[:], zeusm.asarray(np.arange(4)), ValueError),
        (np.s_[:], zeusm.asarray(np.arange(3, dtype="u1")), ValueError),
        (np.s_[:], zeusm.asarray(np.zeros((2, 1), "u1")), ValueError),
    ]:
        if value == 256 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
            continue  # NumPy 1 wraps the number, with a warning.
        with pytest.raises(error):
            array[key] = value
        assert array.copy_to_host().tolist() == [0, 1, 2, 3]
    repeated = array.base.view("u1", (3, 4), (0, 1))
    with pytest.raises(ValueError, match="stride is 0"):
        repeated[...] = 1
    desc = array.__sycl_usm_array_interface__
    frozen = zeusm.from_sycl_usm_array_interface(desc | {"data": (desc["data"][0], True)}, array)
    with pytest.raises(ValueError, match="read-only"):
        frozen[0] = 1


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_random_assignments(data):
    """Random selections and values, beside NumPy."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3), "shape")
    expected = np.zeros(shape, "i4")
    kind = data.draw(st.sampled_from(["device", "shared", "host"]), "kind")
    array = zeusm.asarray(expected, usm_type=kind)
    for _ in range(4):
        key = tuple(
            data.draw(st.one_of(st.integers(-size, size - 1), st.slices(size)), "entry")
            for size in shape
        )
        selected = expected[key]
        values = data.draw(st.integers(-9, 9), "value") + np.arange(selected.size, dtype="i4")
        values = values.reshape(selected.shape)
        form = data.draw(st.sampled_from(["host", "usm", "number"]), "form")
        if form == "number":
            values = 7
        expected[key] = values
        array[key] = zeusm.asarray(values) if form == "usm" else values
        np.testing.assert_array_equal(array.copy_to_host(), expected)


class TestMemory:
    def test_assignment(self, memory_class):
        memory = memory_class(10)
        memory[:] = 0
        memory[2:4] = b"ab"
        memory[4:6] = np.array([0x6463], "<u2")
        memory[6:8] = zeusm.asarray(np.frombuffer(b"ef", "u1"))
        memory[8:9] = ord("!")
        memory[5:5] = b""
        assert memory.tobytes() == b"\0\0abcdef!\0"

    def test_refused(self, memory_class):
        memory = memory_class(4)
        memory.memset(1)
        for key, value, error in [
            (np.s_[:], b"abc", ValueError),
            (np.s_[:2], zeusm.asarray(np.arange(3, dtype="u1")), ValueError),
            (np.s_[:], 256, ValueError),
            (np.s_[:], -1, ValueError),
            (np.s_[:], "text", TypeError),
            (np.s_[:], [1, 2, 3, 4], TypeError),
            (np.s_[0], 1, TypeError),
            (np.s_[::2], b"ab", ValueError),
        ]:
            with pytest.raises(error):
                memory[key] = value
        assert memory.tobytes() == b"\1\1\1\1"

    def test_numpy_refuses_device_memory(self):
        memory = zeusm.memory.MemoryUSMDevice(4)
        for convert in np.asarray, np.array, lambda it: np.asarray(it, dtype="u1"):
            with pytest.raises(TypeError, match="copy_to_host"):
                convert(memory)


def test_without_numpy(fresh):
    fresh("""
import sys
sys.modules["numpy"] = None
import zeusm
import zeusm.memory as zm
source = zm.MemoryUSMHost(1000).view("uint8")
source.base.copy_from_host(b"abcd" * 250)
target = zeusm.empty(1000, "uint8")
target[::-1] = source
assert target.base.tobytes() == b"dcba" * 250
for call in [zm.MemoryUSMHost(4).copy_to_host, lambda: zeusm.asarray([1.0])]:
    try:
        call()
    except ImportError as error:
        assert "pip install numpy" in str(error), error
    else:
        raise AssertionError(call)
""")


class TestOperators:
    """There is no arithmetic, and the error names what has."""

    @pytest.mark.parametrize("name", BINARY)
    def test_numbers_and_arrays(self, usm_type, name):
        array = zeusm.asarray([1, 2], usm_type=usm_type)
        compute = getattr(operator, name)
        for left, right in (array, 2), (2.0, array), (array, True), (1j, array), (array, array):
            with pytest.raises(TypeError, match="no arithmetic: dpnp"):
                compute(left, right)

    @pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
    def test_one_operand(self, usm_type, name):
        with pytest.raises(TypeError, match="no arithmetic: dpnp"):
            getattr(operator, name)(zeusm.asarray([1, 2], usm_type=usm_type))

    def test_divmod_and_three_operands(self):
        array = zeusm.asarray([1, 2])
        for call in lambda: divmod(array, 2), lambda: divmod(2, array), lambda: pow(array, 2, 3):
            with pytest.raises(TypeError, match="no arithmetic: dpnp"):
                call()

    @pytest.mark.parametrize("usm_type", ["shared", "host"])
    def test_numpy_computes_with_memory_of_the_host(self, usm_type):
        array = zeusm.asarray([1.0, 2.0], usm_type=usm_type)
        for other in np.array([3.0, 4.0]), np.float64(3), np.float32(3):
            wanted = np.array([1.0, 2.0]) - other
            np.testing.assert_array_equal(array - other, wanted)
            np.testing.assert_array_equal(other - array, -wanted)

    @pytest.mark.parametrize("key", [np.array([True, False]), [0, 1], True, np.s_[..., [0]]])
    def test_masks_and_lists_of_indices(self, usm_type, key):
        array = zeusm.asarray([1, 2], usm_type=usm_type)
        with pytest.raises(IndexError, match="masks and lists of indices make copies, as dpnp"):
            array[key]
        with pytest.raises(IndexError, match="masks and lists of indices"):
            array[key] = 3
