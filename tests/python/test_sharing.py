"""Slices share the memory, `close` releases it, and pickles copy its bytes."""

import gc
import pickle
import sys
import threading
import weakref

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory
import zeusm.memory as zm

N = 4096
PATTERN = bytes(i % 251 for i in range(N))


def filled(memory_class, **keywords):
    x = memory_class(N, **keywords)
    x.copy_from_host(PATTERN)
    return x


@pytest.mark.parametrize(
    "part", [slice(None), slice(16, 32), slice(-8, None), slice(5, 5), slice(9, 2), slice(0, 10**9)]
)
def test_a_slice_shares_the_memory(memory_class, part):
    x = filled(memory_class)
    y = x[part]
    assert type(y) is memory_class
    assert bytes(y) == PATTERN[part]
    start = part.indices(N)[0]
    assert y._pointer == (x._pointer + start if y.nbytes else 0)
    y.memset(255)
    expected = bytearray(PATTERN)
    expected[part] = b"\xff" * y.nbytes
    assert bytes(x) == expected


def test_a_slice_outlives_the_whole(memory_class):
    y = filled(memory_class)[100:200][10:20]
    gc.collect()
    assert bytes(y) == PATTERN[110:120]


def test_a_slice_goes_to_dpctl(memory_class):
    x = filled(memory_class)
    y = dpctl.memory.as_usm_memory(x[64:128])
    assert (y._pointer, y.nbytes) == (x._pointer + 64, 64)
    assert bytes(y) == PATTERN[64:128]


@pytest.mark.parametrize(
    ("index", "error"),
    [(slice(0, 8, 2), ValueError), (slice(8, 0, -1), ValueError), (0, TypeError), ("a", TypeError)],
)
def test_what_is_no_slice_of_bytes(memory_class, index, error):
    with pytest.raises(error, match="slice"):
        memory_class(N)[index]


def test_a_single_byte_is_read_and_set_as_the_error_says(memory_class):
    memory, i = filled(memory_class), 7
    with pytest.raises(TypeError, match=r"memory\[i:i\+1\].tobytes\(\) reads one byte"):
        memory[i]
    assert memory[i : i + 1].tobytes() == PATTERN[7:8]
    with pytest.raises(TypeError, match=r"memory\[i:i\+1\] = bytes\(\[value\]\) sets it"):
        memory[i] = 1
    memory[i : i + 1] = bytes([1])
    assert memory[i : i + 1].tobytes() == b"\1"


def test_closing_frees(memory_class):
    x = memory_class(N)
    with x as same:
        assert same is x
        x.memset(1)
    assert x.closed
    assert "closed" in repr(x)
    x.close()
    uses = [
        x.memset,
        x.tobytes,
        x.copy_to_host,
        x.__enter__,
        lambda: x[1:2],
        lambda: x._pointer,
        lambda: x.__sycl_usm_array_interface__,
        lambda: x.copy_from_host(b"a"),
        lambda: memory_class(N).copy_from_device(x),
        lambda: zeusm.memory.as_usm_memory(x),
        lambda: memory_class(x),
        lambda: pickle.dumps(x),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="closed"):
            use()


def test_a_closed_object_gives_no_buffer(host_class):
    x = host_class(N)
    x.close()
    with pytest.raises(ValueError, match="closed"):
        memoryview(x)


def test_a_view_keeps_the_memory_from_being_closed(host_class):
    x = host_class(N)
    view = memoryview(x)
    array = np.asarray(view)
    for _ in range(2):
        with pytest.raises(
            BufferError, match=r"memoryviews, arrays or operations use it \([12] do\)"
        ):
            x.close()
    del view, array
    x.close()
    assert x.closed


def test_a_share_keeps_the_memory_from_being_closed(memory_class):
    x = memory_class(N)
    y = x[10:]
    with pytest.raises(BufferError, match="share"):
        x.close()
    assert not x.closed
    del y
    x.close()


def test_a_reader_of_the_interface_keeps_the_memory_from_being_closed(memory_class):
    x = filled(memory_class)
    y = dpctl.memory.as_usm_memory(x)
    with pytest.raises(BufferError, match="__sycl_usm_array_interface__"):
        x.close()
    assert bytes(y) == PATTERN


def test_closing_a_wrapper_lets_go_of_the_owner(memory_class):
    owner = dpctl.memory.MemoryUSMShared(N)

    class Duck:
        __sycl_usm_array_interface__ = owner.__sycl_usm_array_interface__ | {
            "data": (owner._pointer, False)
        }

    duck = Duck()
    gone = weakref.ref(duck)
    y = zeusm.memory.as_usm_memory(duck)
    del duck
    assert gone() is not None
    y.close()
    assert gone() is None


def test_threads_race_to_close(memory_class):
    for _ in range(50):
        x = memory_class(N)
        failures = []

        def work(x=x, failures=failures):
            for _ in range(20):
                try:
                    x.memset(1)
                    x.close()
                except (ValueError, BufferError):
                    pass
                except BaseException as error:
                    failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert x.closed


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_keeps_kind_bytes_alignment_and_device(memory_class, protocol):
    x = filled(memory_class, alignment=1024)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert type(y) is memory_class
    assert bytes(y) == PATTERN
    assert y._pointer != x._pointer
    assert y._pointer % 1024 == 0
    assert y.__reduce_ex__(2)[1][2] == 1024
    assert y.sycl_device == x.sycl_device
    assert y.sycl_context == dpctl.SyclQueue(x.sycl_device).sycl_context


def test_out_of_band_buffers_copy_nothing(host_class):
    x = filled(host_class)
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(data) < 500
    (buffer,) = buffers
    assert np.frombuffer(buffer.raw(), "u1").ctypes.data == x._pointer
    assert bytes(pickle.loads(data, buffers=buffers)) == PATTERN
    # Read-only buffers are accepted too.
    assert bytes(pickle.loads(data, buffers=[bytes(buffer.raw())])) == PATTERN


def test_out_of_band_buffers_of_device_memory():
    x = filled(zeusm.memory.MemoryUSMDevice)
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(data) < 500
    assert bytes(pickle.loads(data, buffers=buffers)) == PATTERN


def test_a_pickle_from_a_machine_with_another_device(memory_class):
    x = filled(memory_class)
    rebuild, (version, content, alignment, device, kind) = x.__reduce_ex__(2)
    assert device == x.sycl_device.filter_string
    y = rebuild(version, content, alignment, "level_zero:gpu:99", kind)
    assert bytes(y) == PATTERN


def test_a_pickle_of_an_unknown_kind():
    rebuild, (*state, _) = zeusm.memory.MemoryUSMHost(4).__reduce_ex__(2)
    with pytest.raises(ValueError, match="uhared"):
        rebuild(*state, "uhared")


def test_a_pickle_of_a_newer_version_is_refused(memory_class):
    rebuild, (_, *state) = memory_class(4).__reduce_ex__(2)
    for rest in state, ["another", "state"]:
        with pytest.raises(ValueError, match="memory object has version 2.*reads version 1.*newer"):
            rebuild(2, *rest)


def test_objects_without_bytes_are_pickled(memory_class):
    y = pickle.loads(pickle.dumps(memory_class(0)))
    assert (type(y), y.nbytes) == (memory_class, 0)


def test_size_in_python(memory_class):
    assert 64 < sys.getsizeof(memory_class(0)) <= 112
    assert sys.getsizeof(memory_class(1 << 20)) - sys.getsizeof(memory_class(0)) == 1 << 20


def uses(target, array):
    """What takes a memory object as the source or the destination."""
    return {
        "a slice": lambda x: target.__setitem__(slice(0, 64), x),
        "an array's elements": lambda x: array.__setitem__(..., x),
        "asarray": lambda x: zeusm.asarray(x, copy=True),
        "as_usm_array": zeusm.as_usm_array,
        "copy_to_device": lambda x: array.copy_to_device(x),
    }


@pytest.mark.parametrize("use", uses(None, None))
def test_zeusm_itself_is_no_reader_of_the_interface(memory_class, use):
    with memory_class(64) as x:
        x.memset(3)
        uses(memory_class(64), zeusm.empty(64, "u1"))[use](x)
    assert x.closed


def test_copies_without_sycl(fresh):
    fresh("""
        import sys
        sys.modules["dpctl"] = None
        import zeusm, zeusm.memory as zm

        source, target = zm.MemoryUSMShared(8), zm.MemoryUSMShared(8)
        source.memset(3)
        array = zeusm.empty(8, "u1", usm_type="shared")
        target[0:8] = source
        assert target.tobytes() == bytes([3] * 8)
        array[...] = source
        target.memset(4)
        target[0:8] = array
        assert target.tobytes() == bytes([3] * 8)
        target.memset(5)
        array.copy_to_device(target)
        for same in zeusm.asarray(source), zeusm.as_usm_array(source), zeusm.as_usm_array(array):
            assert (same.shape, same.dtype) == ((8,), "u1")
            assert same.copy_to_host().tolist() == [3] * 8
    """)


def test_a_field_of_packed_records_is_assigned_as_bytes():
    """Its alignment keeps it from being exported, not from being copied."""
    records = zeusm.empty(4, [("x", "u1"), ("y", "f4")], usm_type="shared")["y"]
    memory = zm.MemoryUSMShared(64)
    size = zm.as_usm_memory(records).nbytes
    memory[0:size] = records
    assert memory[0:size].tobytes() == zm.as_usm_memory(records).tobytes()


def test_a_class_that_overrides_the_interface_is_read():
    other = zm.MemoryUSMShared(8)

    class Elsewhere(zm.MemoryUSMShared):
        @property
        def __sycl_usm_array_interface__(self):
            return other.__sycl_usm_array_interface__

    memory = Elsewhere(8)
    assert zeusm.asarray(memory)._pointer == other._pointer
    assert zeusm.as_usm_array(memory)._pointer == other._pointer


def test_the_source_of_a_slice_is_imported_once(memory_class):
    source, target = filled(memory_class), zm.MemoryUSMShared(N)

    class Stored:
        """Its dictionary has one capsule, which has one consumer."""

        __sycl_usm_array_interface__ = source.__sycl_usm_array_interface__

    target[:] = Stored()
    assert target.tobytes() == PATTERN
