"""Ray's direct transport of arrays: an actor opens the memory of another one on the same machine, without a copy.

Source: Ray's documentation, "Ray Direct Transport", custom transports.
"""

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import zeusm
from ray.experimental import register_tensor_transport
from ray.experimental.rdt.tensor_transport_manager import (
    CommunicatorMetadata,
    TensorTransportManager,
    TensorTransportMetadata,
)
from zeusm._pickling import CLASSES
from zeusm.memory import IPCMemoryHandle

__all__ = ["register"]

#: Its name in `@ray.method(tensor_transport=...)`.
NAME = "ZEUSM"
#: What its arrays are on, as PyTorch names devices.
DEVICE = "xpu"


def register() -> None:
    """Register the transport ``"ZEUSM"`` with Ray, before the program defines the actors that use it.

    Arrays that a method with ``@ray.method(tensor_transport="ZEUSM")`` returns stay in the memory of its actor. An actor of the
    same machine and user that has one as an argument opens that memory by an IPC handle: it sees what the owner writes, and the
    owner what it writes. The owner keeps the array until no reference to the result is left.

    Raises
    ------
    ValueError
        When it is registered already.

    Examples
    --------
    >>> import zeusm_ray
    >>> zeusm_ray.register()
    """
    register_tensor_transport(NAME, [DEVICE], _Transport, zeusm.UsmArray)


@dataclass
class _Exports(TensorTransportMetadata):
    """Of each array a handle, None if it has no bytes, and the state of its pickle."""

    exports: list[tuple[bytes | None, tuple[Any, ...]]] = field(default_factory=list)


class _Transport(TensorTransportManager):
    """The receiver alone acts: it opens what the owner has exported."""

    def __init__(self) -> None:
        #: What keeps the exported memory alive, by Ray's objects.
        self._kept: dict[str, list[IPCMemoryHandle]] = {}

    def tensor_transport_backend(self) -> str:
        return NAME

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Any]) -> _Exports:
        found = _Exports([(array.shape, array.dtype) for array in rdt_object], DEVICE)
        kept: list[IPCMemoryHandle] = []
        has_dpctl = find_spec("dpctl") is not None
        for array in rdt_object:
            if has_dpctl:
                array.sycl_queue.wait()  # Kernels may still write to it, and processes have no order.
            # A strided array's state has a copy, which the handle keeps alive.
            _, (version, memory, *layout) = array.__reduce_ex__(5)
            data = None
            if memory.nbytes:
                handle = memory.ipc_handle()
                kept.append(handle)
                data = handle.to_bytes()
            found.exports.append((data, (version, memory.get_usm_type(), *layout)))
        self._kept[obj_id] = kept
        return found

    def get_communicator_metadata(
        self, src_actor: Any, dst_actor: Any, backend: str | None = None
    ) -> CommunicatorMetadata:
        return CommunicatorMetadata()

    def recv_multiple_tensors(
        self,
        obj_id: str,
        tensor_transport_metadata: Any,
        communicator_metadata: CommunicatorMetadata,
        target_buffers: list[Any] | None = None,
    ) -> list[Any]:
        if target_buffers:
            raise ValueError("the arrays are the owner's memory, so there is no copy into others")
        received = []
        for data, (version, usm_type, *layout) in tensor_transport_metadata.exports:
            memory = CLASSES[usm_type](0) if data is None else IPCMemoryHandle.open(data)
            received.append(zeusm._array_from_pickle(version, memory, *layout))
        return received

    def send_multiple_tensors(
        self,
        tensors: list[Any],
        tensor_transport_metadata: Any,
        communicator_metadata: CommunicatorMetadata,
    ) -> None:
        raise NotImplementedError("the receiver opens the memory, nothing is sent")

    def garbage_collect(self, obj_id: str, tensor_transport_meta: Any, tensors: list[Any]) -> None:
        self._kept.pop(obj_id, None)

    def abort_transport(self, obj_id: str, communicator_metadata: CommunicatorMetadata) -> None:
        """Nothing is under way after a failure: opening is one step."""
