"""Copies between USM and memory of CUDA, with the machine's driver or a stand-in that checks and records its calls."""

import copy
import re

import numpy as np
import pytest
import zeusm
import zeusm.memory
from arrays import numbers
from cuda_driver import Driver, build
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

pytestmark = pytest.mark.once

CHUNK = 1 << 20
LAYOUTS = {
    "C": np.s_[:],
    "rows": np.s_[:, 2:5],
    "columns": np.s_[:, ::2],
    "negative": np.s_[::-1, ::-2],
    "one": np.s_[1, 2, ...],
}


@pytest.fixture(scope="module")
def cuda():
    return Driver()


@pytest.fixture
def stand_in(cuda):
    if cuda.is_real:
        pytest.skip("a real driver records no calls")
    assert cuda.is_clean()
    cuda.calls()
    yield cuda
    cuda.library.stand_in_fail(b"", 0, 0)
    assert cuda.is_clean()


class TestReading:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_layouts(self, cuda, usm_type, layout, order):
        host = np.asarray(numbers((4, 6)), order=order)[LAYOUTS[layout]]
        array = zeusm.asarray(cuda.array(host), usm_type=usm_type)
        assert array.usm_type == usm_type
        assert array.dtype == host.dtype
        np.testing.assert_array_equal(array.copy_to_host(), host)
        for wanted in "CF":
            ordered = zeusm.asarray(cuda.array(host), usm_type=usm_type, order=wanted)
            assert ordered.c_contiguous if wanted == "C" else ordered.f_contiguous
            np.testing.assert_array_equal(ordered.copy_to_host(), host)

    @settings(deadline=None)
    @given(host=hnp.arrays("i2", hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)))
    def test_any_view(self, cuda, host):
        for view in (
            host,
            host.T,
            host[..., ::-1] if host.ndim else host,
            host[:0] if host.ndim else host,
        ):
            array = zeusm.asarray(cuda.array(view))
            np.testing.assert_array_equal(array.copy_to_host(), view)

    @pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17, 8 * CHUNK + 5])
    def test_several_chunks(self, cuda, usm_type, size):
        host = np.arange(size // 4 + 1, dtype="u4").view("u1")[:size]
        np.testing.assert_array_equal(
            zeusm.asarray(cuda.array(host), usm_type=usm_type).copy_to_host(), host
        )
        wide = np.arange(3 * 600 * 800, dtype="f8").reshape(3, 600, 800)[:, ::2, 10:-10]
        np.testing.assert_array_equal(
            zeusm.asarray(cuda.array(wide), usm_type=usm_type).copy_to_host(), wide
        )

    def test_records(self, cuda):
        host = np.zeros(5, [("x", "f4"), ("y", "i8")])
        host["y"] = range(5)
        array = zeusm.asarray(cuda.array(host))
        np.testing.assert_array_equal(array.copy_to_host(), host)
        np.testing.assert_array_equal(
            zeusm.asarray(cuda.array(host["y"])).copy_to_host(), host["y"]
        )

    def test_no_elements_need_no_driver(self, cuda):
        there = cuda.array(np.zeros((3, 0), "f4"))
        assert there.__cuda_array_interface__["data"][0] == 0
        assert zeusm.asarray(there).shape == (3, 0)
        zeusm.memory.MemoryUSMDevice(4).copy_from_device(there)

    def test_memory_objects(self, cuda, memory_class):
        host = numbers((4, 6))
        memory = memory_class(100)
        memory.memset(7)
        memory.copy_from_device(cuda.array(host))
        assert memory.tobytes() == host.tobytes() + b"\x07" * 4
        memory.copy_from_device(cuda.array(host[::-1, ::-1]))
        assert memory.tobytes() == host.tobytes() + b"\x07" * 4
        with pytest.raises(ValueError, match="96"):
            memory_class(95).copy_from_device(cuda.array(host))

    def test_assignment(self, cuda, usm_type):
        array = zeusm.asarray(np.zeros((4, 6), "i4"), usm_type=usm_type)
        array[1::2] = cuda.array(numbers((2, 6)))
        np.testing.assert_array_equal(array[1::2].copy_to_host(), numbers((2, 6)))
        assert not array[::2].copy_to_host().any()
        with pytest.raises(ValueError, match="needs to be converted"):
            array[0] = cuda.array(numbers(6, "f4"))

    def test_arguments(self, cuda):
        there = cuda.array(numbers(3))
        assert zeusm.asarray(there, dtype="i4").dtype == np.int32
        with pytest.raises(
            TypeError, match="CUDA memory of type int32 is not converted to float32"
        ):
            zeusm.asarray(there, dtype="f4")
        with pytest.raises(ValueError, match="without a copy"):
            zeusm.asarray(there, copy=False)
        with pytest.raises(TypeError, match="not supported"):
            zeusm.asarray(cuda.array(np.zeros(3, ">f4")))


class TestWriting:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("source", LAYOUTS)
    def test_layouts(self, cuda, usm_type, layout, source):
        there = cuda.array(np.zeros((4, 6), "i4")[LAYOUTS[layout]])
        host = numbers((4, 6))[LAYOUTS[source]]
        array = zeusm.asarray(numbers((4, 6)), usm_type=usm_type)[LAYOUTS[source]]
        if host.shape != there.host.shape:
            with pytest.raises(ValueError, match="neither broadcast nor converted"):
                array.copy_to_device(there)
            return
        array.copy_to_device(there)
        np.testing.assert_array_equal(there.contents(), host)

    def test_types_without_a_name(self, cuda, usm_type):
        """CUDA's dictionary has NumPy's letters: numbers of machine learning are exchanged as integers."""
        array, there = zeusm.empty(3, "bfloat16", usm_type=usm_type), cuda.array(numbers(3, "u2"))
        with pytest.raises(ValueError, match="bfloat16: it is neither broadcast nor converted"):
            array.copy_to_device(there)
        array.base.view("u2")[:] = there
        array.base.view("u2").copy_to_device(there)
        np.testing.assert_array_equal(there.contents(), numbers(3, "u2"))

    @pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f8", "c16", "u1,u2", "f4,f8", "f8,c16"])
    @pytest.mark.parametrize(
        "view",
        [np.s_[::-1], np.s_[::-1, ::-1], np.s_[:, 10:90], np.s_[:, ::3]],
        ids=["reversed rows", "reversed", "columns", "every third column"],
    )
    def test_elements_with_small_gaps(self, cuda, dtype, view):
        """They are moved on the host, for which the size of the elements matters."""
        host = np.arange(20 * 100 * np.dtype(dtype).itemsize, dtype="u1").view(dtype)
        host = host.reshape(20, 100)[view]
        there = cuda.array(host)
        before = there.contents().base.copy()
        array = zeusm.asarray(there, order="C")
        assert array.copy_to_host().tobytes() == host.tobytes()
        zeusm.asarray(np.zeros_like(host, order="C")).copy_to_device(there)
        assert there.contents().tobytes() == bytes(host.nbytes)
        array.copy_to_device(there)
        np.testing.assert_array_equal(there.contents().base, before)

    def test_overlapping_elements_do_not_write_the_gaps(self, stand_in):
        there = stand_in.array(np.full(40, 9, "u1"))
        strided = {"shape": (2, 2, 10), "strides": (11, 1, 3)}
        there.__cuda_array_interface__ |= strided
        zeusm.asarray(np.zeros((2, 2, 10), "u1")).copy_to_device(there)
        offsets = {11 * i + j + 3 * k for i in range(2) for j in range(2) for k in range(10)}
        assert [at for at, byte in enumerate(there.contents()) if byte == 0] == sorted(offsets)
        with pytest.raises(ValueError, match="gaps between its elements, or they overlap"):
            zeusm.memory.MemoryUSMHost(4).copy_to_device(there)

    def test_bytes_between_the_elements_stay(self, cuda):
        there = cuda.array(np.full((4, 6), 9, "i4")[:, ::2])
        zeusm.asarray(numbers((4, 3))).copy_to_device(there)
        whole = there.contents()
        np.testing.assert_array_equal(whole, numbers((4, 3)))
        assert (np.lib.stride_tricks.as_strided(whole[:, 0:1], (4, 5), (24, 4))[:, 1::2] == 9).all()

    def test_several_chunks(self, cuda, usm_type):
        host = np.arange(CHUNK + 3, dtype="u2")
        there = cuda.array(np.zeros_like(host))
        zeusm.asarray(host, usm_type=usm_type).copy_to_device(there)
        np.testing.assert_array_equal(there.contents(), host)

    def test_memory_objects(self, cuda, memory_class):
        there = cuda.array(np.full(5, 9, "u1"))
        memory = memory_class(4)
        memory.copy_from_host(b"abcd")
        memory.copy_to_device(there)
        assert there.contents().tobytes() == b"abcd\t"
        with pytest.raises(ValueError, match="has 3 bytes, the memory 4"):
            memory.copy_to_device(cuda.array(np.zeros(3, "u1")))
        with pytest.raises(ValueError, match="gaps"):
            memory.copy_to_device(cuda.array(np.zeros(20, "u1")[::2]))

    def test_read_only(self, cuda):
        there = cuda.array(numbers(3))
        there.__cuda_array_interface__["data"] = (there.base, True)
        for source in (zeusm.asarray(numbers(3)), zeusm.memory.MemoryUSMHost(12)):
            with pytest.raises(ValueError, match="read-only"):
                source.copy_to_device(there)
        np.testing.assert_array_equal(there.contents(), numbers(3))

    def test_usm_and_others(self, usm_type):
        array, there = zeusm.asarray([1, 2]), zeusm.empty(2, "i8", usm_type=usm_type)
        array.copy_to_device(there)
        assert there.copy_to_host().tolist() == [1, 2]
        array.base.copy_to_device(there.base)
        with pytest.raises(TypeError, match="neither"):
            array.copy_to_device(np.zeros(2, int))
        with pytest.raises(ValueError, match="no __sycl_usm_array_interface__"):
            array.base.copy_to_device(np.zeros(2, int))


class TestCalls:
    """Each call of a copy, on the stand-in."""

    def test_of_a_small_array(self, stand_in):
        zeusm.asarray(stand_in.array(numbers(3)))
        attributes = ["cuPointerGetAttribute"] * 3
        assert [call for call in stand_in.calls() if call != "cuInit"] == [
            *["cuPointerGetAttribute", "cuCtxPushCurrent_v2", *attributes],
            *["cuMemcpyDtoHAsync_v2", "cuStreamSynchronize(2)", "cuStreamSynchronize(2)"],
            "cuCtxPopCurrent_v2",
        ]

    def test_rows_are_one_copy(self, stand_in):
        zeusm.asarray(stand_in.array(np.zeros((1000, 100), "f4")[:, 50:]))
        assert stand_in.calls().count("cuMemcpy2DAsync_v2") == 1

    @pytest.mark.parametrize("view", [np.s_[::-1], np.s_[::2], np.s_[::-3]])
    def test_elements_with_small_gaps_are_one_copy_per_chunk(self, stand_in, view):
        host = np.arange(3 * CHUNK // 4, dtype="i4")[view]
        there = stand_in.array(host)
        stand_in.calls()
        np.testing.assert_array_equal(zeusm.asarray(there).copy_to_host(), host)
        assert stand_in.calls().count("cuMemcpyDtoHAsync_v2") == 3

    def test_reversed_arrays_are_written_by_few_copies(self, stand_in):
        there = stand_in.array(np.zeros((300, 1000), "i4")[::-1, ::-1])
        zeusm.asarray(numbers((300, 1000))).copy_to_device(there)
        np.testing.assert_array_equal(there.contents(), numbers((300, 1000)))
        assert stand_in.calls().count("cuMemcpyHtoDAsync_v2") == 2

    @pytest.mark.parametrize("stream", [1, 2, 3])
    def test_the_producers_stream_is_waited_for(self, stand_in, stream):
        there = stand_in.array(np.zeros(3, "u1"), stream=stream)
        stand_in.library.stand_in_produce(stream, there.base, b"new", 3)
        assert zeusm.asarray(there).copy_to_host().tobytes() == b"new"
        own = 2 if stream == 2 else 0
        assert stand_in.calls().count(f"cuStreamSynchronize({stream})") == 1 + own

    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_versions_without_a_stream_wait_for_the_context(self, stand_in, version):
        """RMM's `DeviceBuffer` has version 0."""
        there = stand_in.array(np.zeros(3, "u1"), version=version)
        del there.__cuda_array_interface__["stream"]
        stand_in.library.stand_in_produce(3, there.base, b"new", 3)
        assert zeusm.asarray(there).copy_to_host().tobytes() == b"new"
        assert "cuCtxSynchronize" in stand_in.calls()

    def test_no_stream_means_no_wait(self, stand_in):
        zeusm.asarray(stand_in.array(numbers(3)))
        waits = [call for call in stand_in.calls() if "Synchronize" in call]
        assert waits == ["cuStreamSynchronize(2)"] * 2  # Of the thread's stream.

    def test_memory_of_no_context_uses_the_primary_one(self, stand_in):
        there = stand_in.array(numbers(3), alloc="stand_in_alloc_pooled")
        np.testing.assert_array_equal(zeusm.asarray(there).copy_to_host(), numbers(3))
        calls = stand_in.calls()
        assert "cuDevicePrimaryCtxRetain" in calls
        assert "cuDevicePrimaryCtxRelease_v2" in calls

    def test_every_call_may_fail(self, stand_in):
        """The error names the call, and nothing of a failed copy is left."""
        there = stand_in.array(np.zeros(CHUNK + 1, "u1"), alloc="stand_in_alloc_pooled", stream=1)
        strided = stand_in.array(np.zeros((9, 600), "u1")[:, :300])
        array = zeusm.empty(CHUNK + 1, "u1")
        for use in (
            lambda: zeusm.asarray(there),
            lambda: array.copy_to_device(there),
            lambda: zeusm.asarray(strided),
        ):
            stand_in.calls()
            use()
            calls = [call for call in stand_in.calls() if not re.search("Release|Pop", call)]
            for number, call in enumerate(calls):
                after = calls[:number].count(call)
                if call == "cuStreamSynchronize(2)" and after == calls.count(call) - 1:
                    continue  # At the end, whose result does not matter.
                stand_in.library.stand_in_fail(call.encode(), 700, after)
                name = re.sub(r"_v2|\(\d\)", "", call)
                with pytest.raises(
                    (RuntimeError, ValueError), match=f"{name}.*CUDA_ERROR_ILLEGAL_ADDRESS"
                ):
                    use()
                assert stand_in.is_clean()
        use()

    def test_an_unknown_result_has_its_number(self, stand_in):
        stand_in.library.stand_in_fail(b"cuMemcpyDtoHAsync_v2", 12345, 0)
        with pytest.raises(RuntimeError, match=r"an unknown result \(12345\)"):
            zeusm.asarray(stand_in.array(np.zeros(CHUNK + 1, "u1")))


class TestBadInput:
    def test_a_pointer_of_another_kind(self, cuda):
        there = cuda.array(numbers(3))
        there.__cuda_array_interface__["data"] = (numbers(3).ctypes.data, False)
        with pytest.raises(ValueError, match="in no memory of CUDA"):
            zeusm.asarray(there)

    def test_elements_outside_of_the_allocation(self, cuda):
        there = cuda.array(numbers(3))
        for more in ({"shape": (1 << 30,)}, {"strides": (-4,)}, {"strides": (1 << 40,)}):
            changed = copy.copy(there.__cuda_array_interface__) | more
            with pytest.raises(ValueError, match="the allocation is"):
                zeusm.asarray(Described(changed))

    @pytest.mark.parametrize(
        ("more", "error", "message"),
        [
            ({"stream": 0}, ValueError, "'stream' is 0; it must be None, 1"),
            ({"stream": -3}, ValueError, "'stream' is -3"),
            ({"stream": "1"}, TypeError, "'stream' has '1', which is not an integer"),
            ({"version": -1}, ValueError, "'version' is -1; versions 0 to 3"),
            ({"version": 4}, ValueError, "'version' is 4"),
            ({"version": None}, ValueError, "the field 'version' is missing"),
            ({"mask": object()}, NotImplementedError, "masked arrays are not supported"),
            ({"data": None}, ValueError, "the field 'data' is missing"),
            ({"data": (0, False)}, ValueError, "pointer 0, but 'shape' [3] has elements"),
            ({"data": 5}, ValueError, "'data' must be a pair"),
            ({"data": (-5, False)}, ValueError, "'data' is -5, which is out of range"),
            ({"shape": 3}, ValueError, "'shape' must be a sequence"),
            ({"shape": (-3,)}, ValueError, "cannot be negative"),
            ({"shape": (1 << 62,)}, ValueError, "more than any memory"),
            ({"strides": (1, 2)}, ValueError, "'strides' has 2 entries"),
            ({"strides": (1 << 62,)}, ValueError, "further than any"),
            ({"typestr": "|O"}, ValueError, "the kind is none of"),
            ({"typestr": 3}, ValueError, "'typestr' must be a string"),
            ({"typestr": "|V4", "descr": [("x", "<f8")]}, ValueError, "describes 8 bytes"),
        ],
    )
    def test_fields(self, cuda, more, error, message):
        description = cuda.array(numbers(3)).__cuda_array_interface__ | more
        with pytest.raises(error, match=re.escape(message)) as raised:
            zeusm.asarray(Described(description))
        assert "__cuda_array_interface__" in str(raised.value)
        with pytest.raises(error):
            zeusm.memory.MemoryUSMHost(100).copy_from_device(Described(description))

    def test_no_dictionary(self):
        with pytest.raises(ValueError, match="__cuda_array_interface__ is malformed: it is a int"):
            zeusm.asarray(Described(3))

    def test_where_a_pointer_would_be_needed(self, cuda):
        there = cuda.array(numbers(3))
        for use in (
            zeusm.as_usm_array,
            zeusm.memory.as_usm_memory,
            zeusm.memory.MemoryUSMDevice,
            zeusm.memory.MemoryUSMDevice(12).copy_from_device_async,
        ):
            with pytest.raises(ValueError, match="in memory of CUDA, which is no USM"):
                use(there)

    def test_without_a_driver(self, fresh, tmp_path):
        """A clear error, and a later attempt finds a driver that has been installed meanwhile."""
        library = build(tmp_path)
        fresh(
            """
            import ctypes, sys
            import zeusm

            class There:
                __cuda_array_interface__ = {
                    "shape": (3,), "typestr": "|u1", "data": (4096, False), "version": 3, "stream": None
                }

            def error():
                try:
                    zeusm.asarray(There())
                except (RuntimeError, ValueError) as error:
                    return type(error), str(error)

            kind, text = error()
            if "in no memory of CUDA" not in text:  # This machine has a driver.
                assert kind is RuntimeError
                assert "driver library: libcuda.so.1: cannot open" in text or "cuInit failed" in text, text
                ctypes.CDLL(sys.argv[1])
                assert error()[0] is ValueError
            """,
            library,
        )


class Described:
    def __init__(self, description):
        self.__cuda_array_interface__ = description
