"""The data of a Dask worker: device memory is spilled to the host, and from there to disk."""

import contextlib
import os
import sys
import time
import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

import zeusm
import zeusm.memory
import zict
from dask.utils import parse_bytes
from distributed import spill

from zeusm_dask._serialize import deserialize, serialize

#: How long a thread waits for a result that another thread evicts.
_EVICTION_SECONDS = 1.0


class SpillBuffer(MutableMapping[Any, Any]):
    """The stored results of a worker: those in USM-device memory up to a limit, the others on the host or on disk.

    The results that were used least recently leave the device first, and return when they are used. It is passed to
    workers as ``data=(zeusm_dask.SpillBuffer, {"device_limit": "4 GB"})``. Results count whose type is a zeusm array or
    memory object; those within lists and other collections are treated as host memory.

    Parameters
    ----------
    worker_local_directory : str
        The folder for the files; distributed passes it.
    device_limit : int or str
        The most bytes of results on the device.
    host_limit : int or str, optional
        The most bytes of results on the host, further ones are written to disk; by default only Dask's own limit of the
        worker's whole memory applies.
    pool_limit : int or str, optional
        The limit of the worker's pool of device memory, which holds the results and all else that zeusm allocates on the
        default device. An allocation beyond it first spills results.
    max_spill : int or str, optional
        The most bytes on disk.

    Examples
    --------
    >>> import tempfile, zeusm, zeusm_dask
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = zeusm_dask.SpillBuffer(folder, device_limit="1 MiB")
    ...     for number in range(3):
    ...         data[number] = zeusm.asarray([number] * (1 << 16))
    ...     len(data), len(data.device)
    (3, 2)
    """

    #: The results on the device, and those that were there.
    device: zict.LRU[Any, Any]
    #: The results on the host, and of those the ones on disk.
    host: spill.SpillBuffer

    def __init__(
        self,
        worker_local_directory: str,
        *,
        device_limit: int | str,
        host_limit: int | str | None = None,
        pool_limit: int | str | None = None,
        max_spill: int | str | None = None,
    ) -> None:
        self.host = spill.SpillBuffer(
            os.path.join(worker_local_directory, "storage"),
            target=sys.maxsize if host_limit is None else parse_bytes(host_limit),
            max_spill=False if max_spill is None else parse_bytes(max_spill),
        )
        to_host = zict.Func(Spilled, Spilled.restore, self.host)
        self._buffer = zict.Buffer({}, to_host, parse_bytes(device_limit), weight=_bytes)
        self.device = self._buffer.fast
        #: The keys, with the mapping of each.
        self._mappings: dict[Any, MutableMapping[Any, Any]] = {}
        if pool_limit is not None:
            _limit_pool(parse_bytes(pool_limit), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        mapping = self._buffer if _is_on_device(value) else self.host
        if self._mappings.get(key, mapping) is not mapping:
            del self[key]
        self._mappings[key] = mapping
        try:
            mapping[key] = value
        except BaseException:  # A result that cannot be written to disk is not stored.
            if key not in mapping:
                del self._mappings[key]
            raise

    def __getitem__(self, key: Any) -> Any:
        return self._mappings[key][key]

    def __delitem__(self, key: Any) -> None:
        del self._mappings.pop(key)[key]

    def __contains__(self, key: object) -> bool:
        return key in self._mappings

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._mappings))

    def __len__(self) -> int:
        return len(self._mappings)

    @property
    def fast(self) -> Any:
        """What `evict` writes to disk; distributed asks whether there is something."""
        return self.host.fast

    def evict(self) -> int:
        """Write the result to disk that was used least recently; distributed calls this when a worker's memory is short."""
        weight: int = self.host.evict()
        return weight

    @property
    def spilled_total(self) -> spill.SpilledSize:
        """The bytes on disk, for distributed's dashboard."""
        return self.host.spilled_total

    def evict_from_device(self, nbytes: int) -> bool:
        """Spill results to the host until so many bytes have left the device.

        Returns
        -------
        bool
            Whether any has, evicted by this thread or by another one; its memory is free once no task uses it.
        """
        evicted = 0.0
        elsewhere = None  # A result that another thread evicts.
        with self.device.lock:
            keys = list(self.device.order)
        for key in keys:
            if evicted >= nbytes:
                break
            with contextlib.suppress(KeyError):  # Another thread has evicted or deleted it.
                # By key, as zict tries the oldest result only.
                _, value, weight = self.device.evict(key)
                evicted += weight
                elsewhere = key if value is None else elsewhere
        if elsewhere is None or evicted > 0:
            return evicted > 0
        deadline = time.monotonic() + _EVICTION_SECONDS
        while elsewhere in self.device and time.monotonic() < deadline:
            time.sleep(0.001)
        return True


class Spilled:
    """An array or a memory object whose bytes are on the host. It is pickled when it is written to disk."""

    def __init__(self, value: Any) -> None:
        self.header, (self.frame,) = serialize(value)

    def restore(self) -> Any:
        return deserialize(self.header, [self.frame])

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + int(self.frame.nbytes)

    def __reduce_ex__(self, _protocol: Any) -> tuple[Any, ...]:
        from pickle import PickleBuffer

        return _spilled, (self.header, PickleBuffer(self.frame))


def _spilled(header: dict[str, Any], frame: Any) -> Spilled:
    value = Spilled.__new__(Spilled)
    value.header, value.frame = header, memoryview(frame)
    return value


def _is_on_device(value: Any) -> bool:
    if isinstance(value, zeusm.UsmArray):
        return value.usm_type == "device"
    return isinstance(value, zeusm.memory.MemoryUSMDevice)


def _bytes(_key: Any, value: Any) -> int:
    """Return the weight of a result: the bytes that are freed with it."""
    nbytes: int = value.base.nbytes if isinstance(value, zeusm.UsmArray) else value.nbytes
    return nbytes


def _limit_pool(limit: int, buffer: SpillBuffer) -> None:
    """Limit the default pool of device memory; when it is full, results are spilled."""
    pool = zeusm.memory.get_pool("device")
    pool.set_limit(limit)
    reference = weakref.ref(buffer)  # The pool may outlive the worker.

    def make_room(nbytes: int) -> bool:
        found = reference()
        return found is not None and found.evict_from_device(nbytes)

    pool.set_failure_callback(make_room)
