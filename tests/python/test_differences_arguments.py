"""Differences from dpctl in the accepted arguments."""

import ctypes

import dpctl
import dpctl.memory
import kernel_tables
import numpy as np
import pytest
import zeusm
import zeusm.memory

N = 4096


def test_fills_with_what_is_no_integer(memory_class, dpctl_class):
    theirs = dpctl_class(N)
    theirs.memset(1.9)
    assert theirs.tobytes() == b"\x01" * N
    for val in (1.0, np.float32(1)):
        with pytest.raises(TypeError, match="val must be an integer"):
            memory_class(N).memset(val)


def test_a_size_that_no_machine_has(memory_class, dpctl_class):
    with pytest.raises(OverflowError):
        dpctl_class(1 << 63)
    with pytest.raises(zeusm.memory.USMAllocationError, match=str(1 << 63)):
        memory_class(1 << 63)


def test_filter_strings_name_a_place(memory_class, dpctl_class):
    with pytest.raises(TypeError):
        dpctl_class(N, queue="level_zero:gpu")
    memory = memory_class(N, queue="level_zero:gpu")
    with pytest.raises(TypeError):
        dpctl_class(N).get_usm_type("level_zero:gpu")
    assert memory.get_usm_type("level_zero:gpu") == memory.get_usm_type()


def test_no_alignment_is_none_too(memory_class, dpctl_class):
    with pytest.raises(TypeError):
        dpctl_class(N, alignment=None)
    assert memory_class(N, alignment=None).nbytes == N


def test_the_dictionary_has_an_offset(memory_class, dpctl_class):
    ours = memory_class(N).__sycl_usm_array_interface__
    theirs = dpctl_class(N).__sycl_usm_array_interface__
    assert set(ours) - set(theirs) == {"offset"}
    assert set(theirs) - set(ours) == set()
    assert ours["offset"] == 0


class Index:
    """An integer by `__index__` alone."""

    def __index__(self):
        return 64


def test_fills_with_what_has_an_index(memory_class, dpctl_class):
    with pytest.raises(TypeError, match="integer"):
        dpctl_class(N).memset(Index())
    memory = memory_class(N)
    memory.memset(Index())
    assert memory.tobytes() == b"\x40" * N


def test_a_copy_by_a_float(memory_class, dpctl_class):
    assert dpctl_class(dpctl_class(N), copy=1.0).nbytes == N
    with pytest.raises(TypeError, match="integer"):
        memory_class(memory_class(N), copy=1.0)


def test_the_common_base_has_no_objects(memory_class, dpctl_class):
    theirs, ours = dpctl_class.__mro__[1], memory_class.__mro__[1]
    assert theirs.__name__ == ours.__name__ == "_Memory"
    assert isinstance(theirs(), theirs)
    with pytest.raises(TypeError):
        ours()


class Int:
    """An integer by `__int__` alone."""

    def __int__(self):
        return 1


class Described:
    """Memory whose interface has some fields replaced, or removed if they are `...`."""

    def __init__(self, memory, **fields):
        self.memory = memory
        described = memory.__sycl_usm_array_interface__ | fields
        self.__sycl_usm_array_interface__ = {
            name: value for name, value in described.items() if value is not ...
        }


class TestInterface:
    @pytest.mark.parametrize(
        ("field", "value", "error"),
        [
            ("typestr", "uint8", ValueError),
            ("typestr", "B", ValueError),
            ("typestr", b"|u1", ValueError),
            ("typestr", None, ValueError),
            ("typestr", ..., ValueError),
            ("shape", (2.0,), TypeError),
            ("shape", "4", ValueError),
            ("strides", (1.0,), TypeError),
            ("version", 1.0, TypeError),
        ],
    )
    def test_what_only_dpctl_accepts(self, memory_class, dpctl_class, field, value, error):
        assert dpctl.memory.as_usm_memory(Described(dpctl_class(N), **{field: value})).nbytes
        with pytest.raises(error, match=field):
            zeusm.memory.as_usm_memory(Described(memory_class(N), **{field: value}))

    @pytest.mark.parametrize(
        ("field", "value", "error"),
        [
            ("typestr", "|V1", ValueError),
            ("offset", None, TypeError),
            ("syclobj", dpctl.SyclDevice("level_zero:gpu"), ValueError),
        ],
    )
    def test_what_only_zeusm_accepts(self, memory_class, dpctl_class, field, value, error):
        with pytest.raises(error):
            dpctl.memory.as_usm_memory(Described(dpctl_class(N), **{field: value}))
        ours = zeusm.memory.as_usm_memory(Described(memory_class(N), **{field: value}))
        assert ours.nbytes == N

    def test_an_alignment_that_memory_does_not_have(self, memory_class, dpctl_class):
        def of_misaligned(cls):
            memory = cls(N, alignment=64)
            _, flag = memory.__sycl_usm_array_interface__["data"]
            data = (memory._pointer + 1, flag)
            return cls(Described(memory, data=data, shape=(16,)), alignment=64)

        assert of_misaligned(dpctl_class)._pointer % 64 == 1
        with pytest.raises(ValueError, match="not aligned to 64 bytes"):
            of_misaligned(memory_class)

    def test_the_object_that_memory_is_of(self, memory_class, dpctl_class):
        theirs = dpctl_class(N)
        assert dpctl_class(theirs).reference_obj is (
            None if dpctl.__version__ >= "0.19" else theirs
        )
        assert memory_class(theirs).reference_obj is theirs
        assert memory_class(memory_class(N)).reference_obj is None


class TestIntegers:
    def test_a_size_below_those_of_64_bits(self, memory_class, dpctl_class):
        with pytest.raises(OverflowError):
            dpctl_class(-(2**63) - 1)
        with pytest.raises(ValueError, match="negative"):
            memory_class(-(2**63) - 1)

    @pytest.mark.parametrize("val", [-1, 2**70])
    def test_fills_with_what_is_no_byte(self, memory_class, dpctl_class, val):
        with pytest.raises(OverflowError):
            dpctl_class(N).memset(val)
        with pytest.raises(ValueError, match=str(val)):
            memory_class(N).memset(val)

    @pytest.mark.parametrize("copy", [2**40, 2**70, -(2**63) - 1, Index()])
    def test_a_copy_that_only_zeusm_makes(self, memory_class, dpctl_class, copy):
        with pytest.raises((OverflowError, TypeError)):
            dpctl_class(dpctl_class(N), copy=copy)
        memory = memory_class(N)
        assert memory_class(memory, copy=copy)._pointer != memory._pointer

    def test_a_copy_that_only_dpctl_makes(self, memory_class, dpctl_class):
        assert dpctl_class(dpctl_class(N), copy=Int()).nbytes == N
        with pytest.raises(TypeError, match="integer"):
            memory_class(memory_class(N), copy=Int())


def test_a_copy_from_none(memory_class, dpctl_class):
    with pytest.raises(IndexError):
        dpctl_class(N).copy_from_host(None)
    with pytest.raises(TypeError, match="buffer"):
        memory_class(N).copy_from_host(None)


def test_representations(memory_class, dpctl_class):
    assert repr(dpctl_class(N)).startswith("<SYCL(TM)")
    assert repr(memory_class(N)).startswith("<zeusm")


class TestMethodsOfQueues:
    """dpctl's methods accept dpctl's classes only, and other objects as buffers of the host at most."""

    def test_prefetch_and_advice(self, memory_class):
        memory = memory_class(N)
        queue = memory.sycl_queue
        for method, arguments in (queue.prefetch, (N,)), (queue.mem_advise, (N, 0)):
            with pytest.raises(TypeError, match="_Memory"):
                method(memory, *arguments)
            method(dpctl.memory.as_usm_memory(memory), *arguments)

    def test_copies(self, memory_class, usm_type):
        memory, other = memory_class(N), memory_class(N)
        other.memset(7)
        queue = memory.sycl_queue
        if usm_type == "device":
            with pytest.raises(TypeError, match=r"dpctl\.memory\.as_usm_memory"):
                queue.memcpy(memory, other, N)
        else:
            queue.memcpy(memory, other, N)
            memory.memset(1)
        queue.memcpy(*map(dpctl.memory.as_usm_memory, (memory, other)), N)
        assert memory.tobytes() == b"\7" * N

    def test_arguments_of_kernels(self, monkeypatch):
        ours, convert = zeusm.memory.MemoryUSMDevice, dpctl.memory.as_usm_memory
        monkeypatch.setattr(dpctl.memory, "MemoryUSMDevice", ours)
        with pytest.raises(TypeError, match="kernel argument"):
            kernel_tables.sub_groups("level_zero:gpu", "i4", 0)
        made = []

        def converted(nbytes, queue):
            made.append(ours(nbytes, queue=queue))
            return convert(made[-1])

        monkeypatch.setattr(dpctl.memory, "MemoryUSMDevice", converted)
        kernel_tables.sub_groups("level_zero:gpu", "i4", 0)
        assert made


@pytest.mark.parametrize("package", [dpctl.memory, zeusm.memory], ids=["dpctl", "zeusm"])
class TestTheSame:
    """Cases in which zeusm equals dpctl although a difference would be easy to introduce."""

    @pytest.fixture
    def made(self, package, memory_class):
        return getattr(package, memory_class.__name__)

    def test_a_destination_that_is_read_only(self, made):
        with pytest.raises(BufferError, match="not writable"):
            made(N).copy_to_host(bytes(N))
        read_only = np.zeros(N, "u1")
        read_only.flags.writeable = False
        with pytest.raises(ValueError, match="read-only|not writable|not writeable"):
            made(N).copy_to_host(read_only)

    def test_a_buffer_with_gaps(self, made):
        with pytest.raises(BufferError, match="contiguous"):
            made(N).copy_to_host(memoryview(bytearray(2 * N))[::2])
        with pytest.raises(ValueError, match="contiguous"):
            made(N).copy_from_host(np.zeros(2 * N, "u1")[::2])

    def test_an_alignment_is_an_index(self, made):
        assert made(N, alignment=Index())._pointer % 64 == 0

    def test_copy_is_an_integer(self, made):
        memory = made(N)
        assert made(memory, copy=0)._pointer == memory._pointer
        assert made(memory, copy=1).nbytes == N
        for copy in (None, "yes"):
            with pytest.raises(TypeError, match="integer"):
                made(memory, copy=copy)

    def test_a_fill_with_nothing(self, made):
        with pytest.raises(TypeError, match="integer"):
            made(N).memset(None)

    @pytest.mark.parametrize(
        "items",
        [
            np.array([None] * N, object),
            np.zeros(N, [("name", "i8"), ("y", "O")]),
            (ctypes.py_object * N)(),
            (ctypes.c_void_p * N)(),
            (ctypes.c_char_p * N)(),
            (ctypes.POINTER(ctypes.c_int) * N)(),
            (ctypes.CFUNCTYPE(None) * N)(),
        ],
        ids=["objects", "records", "py_object", "void *", "char *", "int *", "function"],
    )
    def test_items_that_refer_to_others(self, made, items):
        with pytest.raises(ValueError, match="(?i)buffer|format|references"):
            made(N).copy_to_host(items)
        with pytest.raises(ValueError, match="(?i)buffer|format|references"):
            made(N).copy_from_host(items)


def test_asynchronous_copies_refuse_references_too(memory_class):
    objects = np.array([None] * N, object)
    memory = memory_class(8 * N)
    for copy in (memory.copy_to_host_async, memory.copy_from_host_async):
        with pytest.raises(ValueError, match="references"):
            copy(objects)
    assert objects[0] is None


def test_items_without_a_format_are_copied(memory_class):
    """NumPy has no buffer format for dates."""
    dates = np.array(["2026-01-01", "2027-01-01"], "M8[s]")
    memory = memory_class(16)
    memory.copy_from_host(dates)
    assert memory.copy_to_host(np.zeros(2, "M8[s]")).tolist() == dates.tolist()
    with pytest.raises(ValueError, match="buffer"):
        memory.copy_from_host(np.zeros(1, [("when", "M8[s]"), ("what", "O")]))
