"""The parts of a result that are in USM-device memory, wherever in it they are: pickle finds them as it goes through the result."""

import io
import pickle
from collections.abc import Sequence
from typing import Any

import cloudpickle
import zeusm
import zeusm.memory

#: What has no parts, so that large results of these are not gone through.
_WITHOUT_PARTS = (str, bytes, bytearray, int, float, complex, type(None))


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles all but the parts, and copies no buffer."""

    def __init__(self, file: io.BytesIO) -> None:
        self.parts: list[Any] = []
        self.buffers: list[pickle.PickleBuffer] = []
        self._numbers: dict[int, int] = {}
        super().__init__(file, protocol=5, buffer_callback=self.buffers.append)

    def persistent_id(self, value: Any) -> int | None:
        if not is_on_device(value):
            return None
        number = self._numbers.setdefault(id(value), len(self.parts))
        if number == len(self.parts):
            self.parts.append(value)
        return number


class _Unpickler(pickle.Unpickler):
    def __init__(self, rest: bytes, buffers: Sequence[Any], parts: Sequence[Any]) -> None:
        self._parts = parts
        super().__init__(io.BytesIO(rest), buffers=buffers)

    def persistent_load(self, number: int) -> Any:
        return self._parts[number]


def is_on_device(value: Any) -> bool:
    """Whether this is an array or a memory object in USM-device memory."""
    if isinstance(value, zeusm.UsmArray):
        return value.usm_type == "device"
    return isinstance(value, zeusm.memory.MemoryUSMDevice)


def take_apart(value: Any) -> tuple[bytes, list[pickle.PickleBuffer], list[Any]]:
    """Return the pickle of the rest, its buffers, and the parts."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return file.getvalue(), pickler.buffers, pickler.parts


def put_together(rest: bytes, buffers: Sequence[Any], parts: Sequence[Any]) -> Any:
    """Return the value of `take_apart`."""
    return _Unpickler(rest, buffers, parts).load()


def bases(value: Any) -> dict[int, int]:
    """Return the memory that the value holds on the device: the bytes by their addresses. Views count by their base.

    A value that cannot be pickled holds none.
    """
    if isinstance(value, _WITHOUT_PARTS):
        return {}
    try:
        parts = [value] if is_on_device(value) else take_apart(value)[2]
    except Exception:
        return {}
    memories = [part.base if isinstance(part, zeusm.UsmArray) else part for part in parts]
    return {memory._pointer: memory.nbytes for memory in memories}
