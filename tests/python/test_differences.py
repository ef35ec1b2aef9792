"""Where zeusm does otherwise than dpctl: each row of docs/dpctl.md, on both packages."""

import array
import ctypes

import dpctl
import dpctl.memory
import pytest
import zeusm.memory
from test_buffer import SIMPLE, Buffer, get_buffer, release_buffer

N = 4096


@pytest.fixture
def dpctl_class(memory_class):
    return getattr(dpctl.memory, memory_class.__name__)


class Described:
    """Memory under another description."""

    def __init__(self, memory, **fields):
        self.memory, self.fields = memory, fields

    @property
    def __sycl_usm_array_interface__(self):
        return self.memory.__sycl_usm_array_interface__ | self.fields


def test_zero_bytes(memory_class, dpctl_class):
    with pytest.raises(ValueError, match="positive"):
        dpctl_class(0)
    assert memory_class(0)._pointer == 0


@pytest.mark.parametrize("alignment", [-64])
def test_alignment(memory_class, dpctl_class, alignment):
    assert dpctl_class(N, alignment=alignment).nbytes == N
    with pytest.raises(ValueError, match=str(alignment)):
        memory_class(N, alignment=alignment)


def test_extent(memory_class, dpctl_class):
    """dpctl's object claims what is not there; nothing must touch it."""
    theirs = dpctl_class(N)
    assert dpctl.memory.as_usm_memory(Described(theirs, shape=(2**40,))).nbytes == 2**40
    with pytest.raises(ValueError, match=str(2**40)):
        zeusm.memory.as_usm_memory(Described(memory_class(N), shape=(2**40,)))


def test_host_buffers(memory_class, dpctl_class):
    numbers = array.array("d", [1.0, 2.0])
    with pytest.raises(ValueError, match="Buffer"):
        dpctl_class(N).copy_from_host(numbers)
    ours = memory_class(N)
    ours.copy_from_host(numbers)
    assert bytes(ours)[:16] == numbers.tobytes()


def test_memset(memory_class, dpctl_class):
    theirs = dpctl_class(N)
    theirs.memset(256)
    assert bytes(theirs) == bytes(N)
    with pytest.raises(ValueError, match="256"):
        memory_class(N).memset(256)


def test_copy(memory_class, dpctl_class):
    theirs = dpctl_class(N)
    assert dpctl_class(theirs, copy=True)._pointer == theirs._pointer
    ours = memory_class(N)
    ours.memset(5)
    copy = memory_class(ours, copy=True)
    assert copy._pointer != ours._pointer
    assert bytes(copy) == bytes(ours)


def test_buffer(host_class):
    for shape_comes_along, memory in (
        (True, getattr(dpctl.memory, host_class.__name__)(N)),
        (False, host_class(N)),
    ):
        buffer = Buffer()
        get_buffer(memory, buffer, SIMPLE)
        assert bool(buffer.shape) == shape_comes_along
        release_buffer(buffer)


def test_interface(memory_class, dpctl_class):
    theirs = dpctl_class(N).__sycl_usm_array_interface__
    ours = memory_class(N).__sycl_usm_array_interface__
    assert (theirs["data"][1], ours["data"][1]) == (True, False)
    assert isinstance(theirs["syclobj"], dpctl.SyclQueue)
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    assert is_valid(ours["syclobj"], b"SyclContextRef")


def test_allocation_error(memory_class, dpctl_class, usm_type):
    with pytest.raises(dpctl.memory.USMAllocationError, match=r"^USM allocation failed$"):
        dpctl_class(2**62)
    with pytest.raises(zeusm.memory.USMAllocationError, match=rf"(?s){usm_type}.*ZE_RESULT_"):
        memory_class(2**62)
    assert issubclass(zeusm.memory.USMAllocationError, MemoryError)
