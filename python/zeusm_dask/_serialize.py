"""Arrays and memory objects as a header and frames.

The frame of host-accessible memory is the memory itself; device memory is copied to the host first. The state of the objects
is that of their pickles.
"""

import pickle
from collections.abc import Sequence
from typing import Any

import zeusm
import zeusm.memory

from zeusm_dask import _ipc

#: The version of the header.
VERSION = 1
#: The first pickle protocol whose state has buffers.
OUT_OF_BAND = 5

Usm = zeusm.UsmArray | zeusm.memory._Memory


def serialize(
    value: Usm, context: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[Any]]:
    """Return the header and the frames of an array or a memory object. `context` has distributed's connection."""
    array = None
    memory: Any = value
    if isinstance(value, zeusm.UsmArray):
        _, (version, memory, *layout) = value.__reduce_ex__(OUT_OF_BAND)
        array = pickle.dumps((version, layout))
    header = {"version": VERSION, "array": array, "nbytes": memory.nbytes}
    if handle := _ipc.handle(value, memory, context):
        return header | {"usm_type": memory.get_usm_type()}, [handle]
    _, (version, content, *state) = memory.__reduce_ex__(OUT_OF_BAND)
    return header | {"memory": (version, *state)}, [memoryview(content)]


def deserialize(header: dict[str, Any], frames: Sequence[Any]) -> Usm:
    """Return a new array or memory object.

    Raises
    ------
    ValueError
        When a newer zeusm has made the header.
    EOFError
        When the frame is cut short, which distributed treats as a connection that was lost.
    """
    if header["version"] != VERSION:
        raise ValueError(
            f"zeusm's data have version {header['version']}, and this zeusm reads version {VERSION}: use one version of "
            "zeusm in the client, the scheduler and the workers"
        )
    if len(frames) != 1:
        raise EOFError(f"zeusm's data of {header['nbytes']} bytes came in {len(frames)} frames")
    (frame,) = frames
    memory: zeusm.memory._Memory
    if "usm_type" in header:
        memory = _ipc.copy_of(bytes(frame), header["usm_type"])
    else:
        size = memoryview(frame).nbytes
        if size != header["nbytes"]:
            raise EOFError(f"zeusm's data of {header['nbytes']} bytes were cut to {size}")
        version, *state = header["memory"]
        memory = zeusm.memory._from_pickle(version, frame, *state)
    if header["array"] is None:
        return memory
    version, layout = pickle.loads(header["array"])
    return zeusm._array_from_pickle(version, memory, *layout)
