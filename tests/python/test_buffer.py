"""PEP 3118: a buffer has exactly the fields that its flags request."""

import ctypes
import hashlib
import io
import struct
import sys

import numpy as np
import pytest
import zeusm.memory

pytestmark = pytest.mark.once

N = 256

SIMPLE = 0
WRITABLE = 0x1
FORMAT = 0x4
ND = 0x8
STRIDES = 0x10 | ND
C_CONTIGUOUS = 0x20 | STRIDES
F_CONTIGUOUS = 0x40 | STRIDES
ANY_CONTIGUOUS = 0x80 | STRIDES
INDIRECT = 0x100 | STRIDES
FULL = INDIRECT | WRITABLE | FORMAT
FLAGS = {
    "SIMPLE": SIMPLE,
    "WRITABLE": WRITABLE,
    "FORMAT": FORMAT,
    "ND": ND,
    "STRIDES": STRIDES,
    "C_CONTIGUOUS": C_CONTIGUOUS,
    "F_CONTIGUOUS": F_CONTIGUOUS,
    "ANY_CONTIGUOUS": ANY_CONTIGUOUS,
    "INDIRECT": INDIRECT,
    "CONTIG": ND | WRITABLE,
    "RECORDS": STRIDES | WRITABLE | FORMAT,
    "FULL": FULL,
}


class Buffer(ctypes.Structure):
    """Py_buffer of the stable ABI."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    )


get_buffer = ctypes.pythonapi.PyObject_GetBuffer
get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int]
release_buffer = ctypes.pythonapi.PyBuffer_Release
release_buffer.argtypes = [ctypes.POINTER(Buffer)]
release_buffer.restype = None


@pytest.mark.parametrize("name", FLAGS)
def test_flags(host_class, name):
    flags = FLAGS[name]
    x = host_class(N)
    buffer = Buffer()
    assert get_buffer(x, buffer, flags) == 0
    try:
        assert (buffer.buf, buffer.len, buffer.itemsize) == (x._pointer, N, 1)
        assert (buffer.readonly, buffer.ndim) == (0, 1)
        assert buffer.obj is x
        assert buffer.format == (b"B" if flags & FORMAT else None)
        assert bool(buffer.shape) == bool(flags & ND)
        assert bool(buffer.strides) == (flags & STRIDES == STRIDES)
        assert not buffer.suboffsets
        if buffer.shape:
            assert buffer.shape[0] == N
        if buffer.strides:
            assert buffer.strides[0] == 1
    finally:
        release_buffer(buffer)


def test_a_buffer_keeps_its_memory(host_class):
    x = host_class(N)
    x.memset(9)
    buffer = Buffer()
    get_buffer(x, buffer, SIMPLE)
    del x
    others = [host_class(N) for _ in range(64)]
    for other in others:
        other.memset(0)
    assert ctypes.string_at(buffer.buf, N) == b"\x09" * N
    release_buffer(buffer)


def test_memoryview(host_class):
    view = memoryview(host_class(N))
    assert (view.format, view.itemsize, view.ndim) == ("B", 1, 1)
    assert (view.shape, view.strides, view.suboffsets) == ((N,), (1,), ())
    assert view.c_contiguous
    assert not view.readonly
    assert view.nbytes == N


def test_python_reads_and_writes_through_it(host_class):
    x = host_class(N)
    struct.pack_into("<4I", x, 16, 1, 2, 3, 4)
    assert struct.unpack_from("<4I", x, 16) == (1, 2, 3, 4)
    assert io.BytesIO(b"zeusm" * 100).readinto(x) == N
    assert bytes(x).startswith(b"zeusmzeusm")
    assert hashlib.sha256(x).digest() == hashlib.sha256(bytes(x)).digest()
    array = np.frombuffer(x, dtype="<f4")
    array[:] = np.arange(N // 4)
    assert np.frombuffer(bytes(x), "<f4").tolist() == list(range(N // 4))
    assert array.ctypes.data == x._pointer


def test_released_views_do_not_disturb_the_rest(host_class):
    x = host_class(N)
    one, other = memoryview(x), memoryview(x)
    one.release()
    other[0] = 5
    assert bytes(x)[0] == 5


def test_an_error_of_a_block_is_not_hidden_by_the_refusal_to_close(host_class):
    x = host_class(N)
    view = memoryview(x)
    with pytest.raises(BufferError, match="memoryviews"), x:
        pass
    with pytest.raises(KeyError, match="mine") as raised, x:
        raise KeyError("mine")
    assert "memoryviews" in raised.value.__notes__[0]
    assert not x.closed
    view.release()
    with pytest.raises(KeyError) as raised, x:
        raise KeyError("mine")
    assert not hasattr(raised.value, "__notes__")
    assert x.closed


def test_device_memory_refuses():
    x = zeusm.memory.MemoryUSMDevice(N)
    with pytest.raises((BufferError, TypeError, ValueError), match=r"(?i)device"):
        memoryview(x)
    with pytest.raises((BufferError, TypeError, ValueError), match=r"(?i)device"):
        np.frombuffer(x, "u1")
    buffer = Buffer()
    with pytest.raises((BufferError, TypeError, ValueError), match=r"(?i)device"):
        get_buffer(x, buffer, FULL)
    assert not buffer.buf


def test_a_refused_request_leaves_no_object(memory_class):
    memory = memory_class(8)
    memory.close()
    view = Buffer()
    view.obj = "of an earlier request"
    with pytest.raises((ValueError, TypeError)):
        get_buffer(memory, ctypes.byref(view), 0)
    assert not ctypes.c_void_p.from_buffer(view, Buffer.obj.offset)


@pytest.mark.parametrize("flags", [0x100, 0x200], ids=["PyBUF_READ", "PyBUF_WRITE"])
def test_flags_of_memoryviews_are_refused(host_class, flags):
    """Newer interpreters raise a SystemError before they ask for the buffer, but not in `memory.__buffer__(flags)`."""
    memory = host_class(8)
    view = Buffer()
    with pytest.raises(BufferError if sys.version_info < (3, 12) else (BufferError, SystemError)):
        get_buffer(memory, ctypes.byref(view), flags)
    memory.close()


def test_an_empty_object_has_an_empty_view(host_class):
    x = host_class(0)
    assert memoryview(x).nbytes == 0
    assert bytes(x) == b""


def test_numpy_gets_the_error_of_a_refused_buffer(host_class):
    """NumPy ignores the error of a buffer, and would make an array that has the object as its only element."""
    x = host_class(N)
    x.close()
    with pytest.raises(ValueError, match="closed"):
        np.asarray(x)
    with pytest.raises(ValueError, match="closed"):
        np.array(x, "f4")


def test_the_array_method_is_numpy_s_view(host_class):
    x = host_class(N)
    x.memset(3)
    array = x.__array__()
    assert (array.dtype, array.ctypes.data) == ("u1", x._pointer)
    assert x.__array__("f4").tolist() == [3.0] * N
    copy = x.__array__(copy=True)
    assert copy.ctypes.data != x._pointer
    assert copy.tolist() == [3] * N


def test_many_views_of_one_object(host_class):
    x = host_class(N)
    views = [memoryview(x) for _ in range(600)]  # Of which some are not in the count of one byte.
    for number, view in enumerate(views[::2] + views[1::2]):
        if number % 50 == 49:
            with pytest.raises(BufferError, match="cannot be closed"):
                x.close()
        view.release()
    x.close()
    with pytest.raises(ValueError, match="closed"):
        memoryview(x)


def test_another_class_does_not_make_device_memory_accessible():
    memory = zeusm.memory.MemoryUSMDevice(64)
    memory.__class__ = zeusm.memory.MemoryUSMShared
    for access in memoryview, np.asarray:
        with pytest.raises(TypeError, match="cannot be accessed by the host"):
            access(memory)
