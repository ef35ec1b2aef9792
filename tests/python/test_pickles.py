"""Forged and modified pickles, which call zeusm's function with arbitrary arguments.

ZEUSM_FUZZ is the number of examples of each test.
"""

import io
import os
import pickle
import struct

import pytest
import zeusm.memory as zm
from conftest import CLASSES
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.once

EXAMPLES = int(os.environ.get("ZEUSM_FUZZ", "150"))
REFUSALS = (ValueError, TypeError, OverflowError, BufferError, zm.USMAllocationError)

contents = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=200).map(bytearray),
    st.binary(min_size=1, max_size=200).map(lambda content: memoryview(content)[::-1]),
    st.none() | st.integers() | st.text() | st.lists(st.integers(), max_size=3),
)
numbers = st.one_of(
    st.sampled_from([0, 1, 2, 64, 4096, 2 << 20, 4 << 20, 1 << 62, 1 << 63, 1 << 64, -1]),
    st.integers(),
    st.none() | st.floats() | st.text(max_size=3),
)
kinds = st.one_of(
    st.sampled_from(["shared", "device", "host", "Shared", ""]), st.text(), st.none(), st.integers()
)
devices = st.one_of(
    st.none(),
    st.sampled_from(["level_zero:gpu:0", "level_zero:gpu:7", "opencl", "host:x:0"]),
    st.text(),
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.just(1) | numbers, contents, numbers, devices, kinds)
def test_any_arguments_are_memory_or_an_error(version, content, alignment, device, usm_type):
    """The call does not crash, and memory has exactly the bytes of the pickle."""
    rebuild, _ = CLASSES["shared"](1).__reduce_ex__(4)
    try:
        memory = rebuild(version, content, alignment, device, usm_type)
    except REFUSALS:
        return
    assert version == 1
    assert memory.tobytes() == memoryview(content).tobytes()
    assert memory.get_usm_type() == usm_type
    if alignment:
        assert memory._pointer % alignment == 0 or not memory.nbytes


class Careful(pickle._Unpickler):
    """Permits only the functions that zeusm's pickles call, as any other function is outside these tests. It is written in
    Python because the C unpickler allocates for any count that a pickle claims; so does Python's for a bytearray, which is
    limited here."""

    dispatch = pickle._Unpickler.dispatch.copy()

    def load_bytearray8(self):
        (length,) = struct.unpack("<Q", self.read(8))
        if length > 1000:
            raise pickle.UnpicklingError(f"{length} bytes")
        self.append(bytearray(self.read(length)))

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8

    def find_class(self, module, name):
        if (module, name) not in [
            ("zeusm.memory", "_from_pickle"),
            ("_codecs", "encode"),
        ]:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(sorted(CLASSES)), st.integers(2, pickle.HIGHEST_PROTOCOL), st.data())
def test_a_changed_pickle_is_memory_or_an_error(usm_type, protocol, data):
    """A modified pickle results in memory of a consistent size, or in a Python exception."""
    memory = CLASSES[usm_type](40)
    memory.copy_from_host(bytes(range(100, 140)))
    whole = bytearray(pickle.dumps(memory, protocol))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        back = Careful(io.BytesIO(whole)).load()
    except SystemError:
        raise
    except Exception:
        return
    if isinstance(back, tuple(CLASSES.values())):
        assert len(back.tobytes()) == back.nbytes
