"""Dask measures, sends and stores zeusm's arrays and memory objects."""

import pickle
import sys
from pathlib import Path

import dask.sizeof
import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
import zeusm_dask
from distributed.protocol import deserialize, serialize
from distributed.protocol.serialize import merge_and_deserialize, serialize_and_split
from zeusm_dask import _ipc

CLASSES = {
    "device": zm.MemoryUSMDevice,
    "shared": zm.MemoryUSMShared,
    "host": zm.MemoryUSMHost,
}


@pytest.fixture(params=CLASSES)
def usm_type(request):
    return request.param


def numbers(shape):
    return np.arange(np.prod(shape), dtype="f4").reshape(shape)


def test_sizes(usm_type):
    for size in (0, 1, 1 << 20):
        assert size <= dask.sizeof.sizeof(CLASSES[usm_type](max(size, 1))) < size + 1000
    array = zeusm.empty((1000, 10), "f4", usm_type=usm_type)
    assert 40_000 <= dask.sizeof.sizeof(array) < 41_000
    assert 4_000 <= dask.sizeof.sizeof(array[:, 0]) < 5_000  # Half of the bytes of [:, :2].


class TestFrames:
    def test_an_array(self, usm_type):
        expected = numbers((3, 4))
        array = zeusm.asarray(expected, usm_type=usm_type)
        for source, result in (
            (array, expected),
            (array.T, expected.T),
            (array[1:, ::2], expected[1:, ::2]),
            (array[::-1], expected[::-1]),
            (array[1, 2], expected[1, 2]),
            (array[:0], expected[:0]),
            (array[1:, 1:].reshape(6), expected[1:, 1:].reshape(6)),
        ):
            header, frames = serialize(source)
            assert header["serializer"] == "dask"
            received = deserialize(header, frames)
            assert received.usm_type == usm_type
            assert received.sycl_device == source.sycl_device
            assert received.dtype == source.dtype
            assert (received.copy_to_host() == result).all()

    def test_memory(self, usm_type):
        memory = CLASSES[usm_type](1000, alignment=256)
        memory.copy_from_host(bytes(range(250)) * 4)
        header, frames = serialize(memory)
        received = deserialize(header, frames)
        assert type(received) is CLASSES[usm_type]
        assert received._pointer % 256 == 0
        assert received.tobytes() == memory.tobytes()

    @pytest.mark.parametrize("usm_type", ["shared", "host"])
    def test_host_accessible_memory_is_not_copied(self, usm_type):
        array = zeusm.asarray(numbers((3, 4)), usm_type=usm_type)
        _, (frame,) = serialize(array[1:])
        assert np.frombuffer(frame, "u1").ctypes.data == array[1:]._pointer
        assert memoryview(frame).nbytes == 32

    def test_a_frame_keeps_the_memory(self):
        memory = zm.MemoryUSMHost(100)
        _, frames = serialize(memory)
        with pytest.raises(BufferError):
            memory.close()
        del frames
        memory.close()

    def test_large_data_are_split_and_merged(self, usm_type):
        array = zeusm.asarray(numbers(1 << 18), usm_type=usm_type)
        header, frames = serialize_and_split(array, size=100_000)
        assert len(frames) == 11
        frames = [bytes(frame) for frame in frames]  # As if they had been sent.
        received = merge_and_deserialize(header, frames)
        assert (received.copy_to_host() == array.copy_to_host()).all()

    def test_records(self, usm_type):
        records = np.array([(1, 2.5), (3, 4.5)], dtype=[("x", "i4"), ("y", "f8")])
        array = zeusm.asarray(records, usm_type=usm_type)
        for source, expected in ((array, records), (array["y"], records["y"])):
            received = deserialize(*serialize(source))
            assert received.dtype == expected.dtype
            assert (received.copy_to_host() == expected).all()

    def test_collections(self, usm_type):
        array = zeusm.asarray(numbers(5), usm_type=usm_type)
        received = deserialize(*serialize({"a": [array, 1], "b": (array.base,)}))
        assert received["a"][0].copy_to_host().tolist() == [0, 1, 2, 3, 4]
        assert received["b"][0].get_usm_type() == usm_type


class TestDamage:
    """Distributed asks again for data that end early (EOFError), and reports any other error."""

    @pytest.mark.parametrize("end", [0, 1, 47])
    def test_a_frame_that_was_cut_short(self, usm_type, end):
        header, (frame,) = serialize(zeusm.asarray(numbers(12), usm_type=usm_type))
        with pytest.raises(EOFError, match=f"48 bytes were cut to {end}"):
            deserialize(header, [bytes(frame)[:end]])

    def test_a_frame_that_is_missing(self, usm_type):
        header, _ = serialize(zeusm.asarray(numbers(12), usm_type=usm_type))
        with pytest.raises(EOFError, match="48 bytes came in 0 frames"):
            deserialize(header, [])

    def test_a_newer_version(self, usm_type):
        header, frames = serialize(zeusm.asarray(numbers(12), usm_type=usm_type))
        header["sub-header"]["version"] = 2
        with pytest.raises(ValueError, match="data have version 2.*reads version 1"):
            deserialize(header, frames)

    def test_a_newer_version_of_an_object(self, usm_type):
        header, frames = serialize(zeusm.asarray(numbers(12), usm_type=usm_type))
        ours = header["sub-header"]
        (_, *memory), (_, *layout) = ours["memory"], pickle.loads(ours["array"])
        for of, newer in [
            ("a memory object", {"memory": (2, *memory)}),
            ("an array", {"array": pickle.dumps((2, *layout))}),
        ]:
            with pytest.raises(ValueError, match=f"pickle of {of} has version 2.*reads version 1"):
                deserialize(header | {"sub-header": ours | newer}, frames)


class TestOffers:
    """A handle is sent if the receiver has the device, and the sender keeps the memory until it was received."""

    @pytest.fixture
    def kept(self):
        token = _ipc._kept.set([])
        yield
        _ipc._kept.reset(token)

    @pytest.fixture
    def identity(self):
        return dict(_ipc._identity())

    def offered(self, value, identity):
        header, (frame,) = serialize(value, context={"recipient": {"zeusm": identity}})
        received = deserialize(header, [frame])
        assert received.copy_to_host().tobytes() == value.copy_to_host().tobytes()
        return "usm_type" in header["sub-header"]

    def test_to_a_receiver_with_the_device(self, kept, identity, usm_type):
        assert self.offered(zeusm.asarray(numbers(1 << 15), usm_type=usm_type), identity)
        assert self.offered(CLASSES[usm_type](1 << 17), identity)

    def test_to_another_machine_or_user(self, kept, identity):
        assert not self.offered(zm.MemoryUSMHost(1 << 17), identity | {"machine": "another 0"})

    def test_to_a_receiver_without_the_device(self, kept, identity):
        assert identity["devices"]
        assert not self.offered(zm.MemoryUSMHost(1 << 17), identity | {"devices": ["another"]})

    def test_to_a_receiver_without_the_plugin(self, kept):
        assert not self.offered(zm.MemoryUSMHost(1 << 17), None)

    def test_memory_that_is_not_kept(self, identity):
        assert not self.offered(zm.MemoryUSMHost(1 << 17), identity)

    @pytest.mark.parametrize("error", [zm.IPCError, zeusm.LevelZeroError, MemoryError, ValueError])
    def test_memory_whose_handle_cannot_be_had(self, kept, identity, monkeypatch, error):
        class Refused(zm.MemoryUSMHost):
            def ipc_handle(self):
                raise error("no descriptor is left")

        assert not self.offered(Refused(1 << 17), identity)

    def test_the_identity_of_the_machine_is_read_once(self, kept, identity, monkeypatch):
        """A process without a free descriptor sends what it can."""
        monkeypatch.setattr(Path, "read_text", lambda path: pytest.fail(f"{path} is read again"))
        assert self.offered(zm.MemoryUSMHost(1 << 17), identity)

    def test_memory_of_another_package(self, kept, identity):
        dpnp = pytest.importorskip("dpnp")
        assert self.offered(zeusm.from_dlpack(dpnp.ones(1 << 15)), identity)

    def test_memory_that_is_small_or_strided(self, kept, identity):
        large = zeusm.asarray(numbers(1 << 15))
        assert not self.offered(large[:10], identity)
        assert not self.offered(large[::-1], identity)


class TestHandles:
    """The owner of exported memory may free it at any time."""

    def test_memory_that_was_freed(self, usm_type):
        memory = CLASSES[usm_type](1 << 17)
        handle = memory.ipc_handle().to_bytes()
        memory.close()
        with pytest.raises(ConnectionError, match="IPC"):
            _ipc.copy_of(handle, usm_type)

    def test_memory_that_is_freed_during_the_copy(self, usm_type, monkeypatch):
        memory = CLASSES[usm_type](1 << 17)

        class Slow(CLASSES[usm_type]):
            def copy_from_device(self, opened):
                super().copy_from_device(opened)
                memory.close()

        handle = memory.ipc_handle().to_bytes()
        assert _ipc.copy_of(handle, usm_type).tobytes() == memory.tobytes()
        monkeypatch.setitem(_ipc.CLASSES, usm_type, Slow)
        with pytest.raises(ConnectionError, match="IPC"):
            _ipc.copy_of(handle, usm_type)

    def test_damaged_handles(self, usm_type):
        handle = CLASSES[usm_type](1 << 17).ipc_handle().to_bytes()
        for damaged in (handle[:-1], b"", bytes(len(handle))):
            with pytest.raises(ConnectionError, match="IPC"):
                _ipc.copy_of(damaged, usm_type)


ROUND_TRIP = """
from distributed.protocol import deserialize, serialize
array = zeusm.asarray([1.0, 2.0])
header, frames = serialize(array)
assert header["serializer"] == "dask", header
assert deserialize(header, frames).copy_to_host().tolist() == [1, 2]
"""


class TestRegistration:
    @pytest.mark.parametrize(
        "imports",
        [
            "import zeusm, distributed",
            "import distributed, zeusm",
            "import dask, zeusm, distributed",
            "import zeusm, dask.array, distributed.client",
        ],
    )
    def test_the_order_of_imports_does_not_matter(self, run, imports):
        run(sys.executable, "-W", "error", "-c", f"{imports}\n{ROUND_TRIP}")

    def test_dask_alone_imports_neither_zeusm_nor_distributed(self, run):
        run(
            *(sys.executable, "-c"),
            "import sys, dask.sizeof; dask.sizeof.sizeof(b'');"
            "assert 'zeusm_dask' in sys.modules;"
            "assert not {'zeusm', 'zeusm._zeusm', 'distributed'} & set(sys.modules)",
        )

    @pytest.mark.parametrize("name", [name for name in zeusm_dask.__all__ if name != "register"])
    def test_docstrings(self, run, name):
        """The examples run, in a program of their own, as they start processes."""
        assert "Examples" in getattr(zeusm_dask, name).__doc__
        code = (
            f"import doctest, zeusm_dask; doctest.run_docstring_examples(zeusm_dask.{name}, {{}})"
        )
        assert run(sys.executable, "-c", code).stdout == ""

    def test_an_unknown_name(self):
        with pytest.raises(AttributeError, match="nothing"):
            zeusm_dask.nothing  # noqa: B018
