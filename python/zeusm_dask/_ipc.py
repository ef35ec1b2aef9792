"""Data between the workers of a machine by IPC handles: a worker copies from the other's memory.

A worker with the plugin tells its peers in the handshake of its connections which machine and devices it has. A peer that
serves its request for data sends an IPC handle in place of the bytes if both have the device. The peer keeps the data until
the worker has acknowledged them, and the worker checks after its copy that they were still there.
"""

import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, wraps
from pathlib import Path
from typing import Any

import zeusm
import zeusm.memory
from distributed import Worker, WorkerPlugin
from zeusm._pickling import CLASSES
from zeusm.memory import IPCError, IPCMemoryHandle

logger = logging.getLogger("distributed.zeusm")

#: The smallest data that are worth a handle, in bytes.
SMALLEST = 1 << 16
#: The key in the handshake.
KEY = "zeusm"

#: The handles of data that are kept until the receiver has acknowledged them; None for data that are not kept.
_kept: ContextVar[list[IPCMemoryHandle] | None] = ContextVar("zeusm_kept", default=None)
#: The plugins of this process's workers.
_plugins: set["IPC"] = set()
_transfers: Counter[str] = Counter()


def transfers() -> dict[str, int]:
    """Return how many objects this process has sent and received by IPC, and how many handles it could not open.

    Returns
    -------
    dict
        The keys are 'sent', 'received' and 'failed'.

    Examples
    --------
    >>> import zeusm_dask
    >>> zeusm_dask.transfers()
    {'sent': 0, 'received': 0, 'failed': 0}
    """
    return {name: _transfers[name] for name in ("sent", "received", "failed")}


class IPC(WorkerPlugin):  # type: ignore[misc]
    """A worker plugin: workers of one machine get zeusm's data from each other by IPC, where both ends can.

    Data on a device that the receiver does not have, small data, and memory that cannot be exported go as bytes, and so does
    everything between machines, and to and from clients. On Windows all data go as bytes, and a worker says so in its log.

    Examples
    --------
    >>> import zeusm_dask
    >>> from distributed import Client
    >>> with Client(n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     _ = client.register_plugin(zeusm_dask.IPC())
    ...     list(client.run(zeusm_dask.transfers).values())
    [{'sent': 0, 'received': 0, 'failed': 0}]
    """

    name = "zeusm-ipc"

    def setup(self, worker: Worker) -> None:
        """Announce this worker's devices, and let it send handles."""
        if not IPCMemoryHandle.is_available():
            logger.warning("memory cannot be exported here, so all data go as bytes")
            return
        self._worker = worker
        overrides = worker.rpc.connection_args.get("handshake_overrides") or {}
        worker.rpc.connection_args["handshake_overrides"] = overrides | {KEY: _identity()}
        worker.handlers["get_data"] = _keeping(worker.handlers["get_data"])
        worker.rpc.collect()  # Closes the idle connections, whose handshakes are over.
        _plugins.add(self)

    def teardown(self, worker: Worker) -> None:
        """Take both back."""
        if self in _plugins:
            _plugins.discard(self)
            self.withdraw()
            worker.handlers["get_data"] = worker.get_data

    def withdraw(self) -> None:
        """Announce nothing on new connections, which get bytes; on any thread."""
        self._worker.rpc.connection_args["handshake_overrides"].pop(KEY, None)
        self._worker.loop.add_callback(self._worker.rpc.collect)


def _keeping(get_data: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Keep the handles of a reply's data: `Worker.get_data` refers to the data until the receiver acknowledges."""

    @wraps(get_data)
    async def keeping(*arguments: Any, **keywords: Any) -> Any:
        token = _kept.set([])
        try:
            return await get_data(*arguments, **keywords)
        finally:
            _kept.reset(token)

    return keeping


def _identity() -> dict[str, Any]:
    """Return what the handles of this process's memory are compared with."""
    return {"machine": _machine(), "devices": list(_devices())}


@cache
def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    user = os.getuid()  # type: ignore[attr-defined,unused-ignore]  # Windows, without IPC, has none.
    return f"{boot} {user}"


@cache
def _devices() -> dict[str, Any]:
    """Return the devices of this process by their UUIDs; None is the default device."""
    found: dict[str, Any] = {}
    devices: list[Any] = [None]
    with suppress(ImportError):
        import dpctl

        devices += dpctl.get_devices(backend="level_zero")
    for device in devices:
        probe = zeusm.memory.MemoryUSMDevice(64, queue=device)
        found.setdefault(str(probe.ipc_handle().device_uuid), device)
    return found


def handle(value: Any, memory: Any, context: dict[str, Any] | None) -> bytes | None:
    """Return a handle of the memory of `value` for the receiver; None if bytes have to go."""
    receiver = ((context or {}).get("recipient") or {}).get(KEY)
    kept = _kept.get()
    if not receiver or kept is None or memory.nbytes < SMALLEST:
        return None
    if receiver["machine"] != _machine():
        return None
    if isinstance(value, zeusm.UsmArray) and not (value.c_contiguous or value.f_contiguous):
        return None  # `memory` is a copy, which nothing keeps.
    try:
        exported = memory.ipc_handle()
    except (RuntimeError, ValueError, MemoryError) as error:
        # Of a shortage, or of a driver without IPC: bytes need neither.
        logger.debug("sent as bytes: %s", error)
        return None
    if str(exported.device_uuid) not in receiver["devices"]:
        return None
    kept.append(exported)
    _transfers["sent"] += 1
    data: bytes = exported.to_bytes()
    return data


def copy_of(data: bytes, usm_type: str) -> zeusm.memory._Memory:
    """Return new memory with the bytes of another worker's memory.

    Raises
    ------
    ConnectionError
        When the memory cannot be opened or was freed. Distributed asks again, and gets bytes.
    """
    try:
        exported = IPCMemoryHandle.from_bytes(data)
        device = _devices().get(str(exported.device_uuid))
        memory = CLASSES[usm_type](exported.nbytes, queue=device)
        with IPCMemoryHandle.open(exported, device=device) as opened:
            memory.copy_from_device(opened)
        # Had the owner freed the memory before the copy was complete, its handle would be invalid now.
        IPCMemoryHandle.open(exported, device=device).close()
    except IPCError as error:
        _transfers["failed"] += 1
        for plugin in _plugins:
            plugin.withdraw()
        logger.warning("data go as bytes from now on, as IPC failed: %s", error)
        raise ConnectionError(f"zeusm's data could not be opened by IPC: {error}") from error
    _transfers["received"] += 1
    return memory
