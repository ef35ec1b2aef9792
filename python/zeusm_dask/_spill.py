"""The data of a Dask worker: device memory is spilled to the host, and from there to disk."""

import contextlib
import os
import sys
import time
import weakref
from collections.abc import Iterator
from pickle import PickleBuffer
from typing import Any

import zeusm
import zeusm.memory
import zict
from dask.utils import parse_bytes
from distributed import spill

from zeusm_dask._parts import bases, put_together, take_apart
from zeusm_dask._serialize import deserialize, serialize

#: How long a thread waits for a result that another thread evicts.
_EVICTION_SECONDS = 1.0


class SpillBuffer(zict.Sieve[Any, Any, bool]):  # type: ignore[misc]
    """The stored results of a worker: those in USM-device memory up to a limit, the others on the host or on disk.

    The results that were used least recently leave the device first, and return when they are used. It is passed to
    workers as ``data=(zeusm_dask.SpillBuffer, {"device_limit": "4 GB"})``. A result counts with the device memory that it holds: as
    an array or a memory object, or in a collection or an object that can be pickled. Memory that several results hold counts once.

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
        held = _Held()
        buffer = zict.Buffer(held, to_host, parse_bytes(device_limit), weight=held.weight)
        self.device = buffer.fast
        held.weights = self.device
        super().__init__({True: buffer, False: self.host}, lambda _, value: bool(bases(value)))
        if pool_limit is not None:
            _limit_pool(parse_bytes(pool_limit), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            super().__setitem__(key, value)
        except BaseException:  # A result that cannot be written to disk is not stored.
            if key not in self.key_to_mapping[key]:
                del self.key_to_mapping[key]
            raise

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


class _Held(dict[Any, Any]):
    """The results on the device. Memory that several of them hold is in the weight of one."""

    weights: zict.LRU[Any, Any]

    def __init__(self) -> None:
        super().__init__()
        #: The memory of each result, and the results of each memory; of these the first has the weight.
        self._bases: dict[Any, dict[int, int]] = {}
        self._holders: dict[int, list[Any]] = {}

    def weight(self, _key: Any, value: Any) -> int:
        """Return the bytes that the result adds."""
        return sum(size for base, size in bases(value).items() if base not in self._holders)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._bases[key] = bases(value)
        for base in self._bases[key]:
            self._holders.setdefault(base, []).append(key)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        for base, size in self._bases.pop(key).items():
            holders = self._holders[base]
            was_first = holders[0] == key
            holders.remove(key)
            if not holders:
                del self._holders[base]
            elif was_first:
                self.weights.weights[key] -= size
                self.weights.weights[holders[0]] += size


class Spilled:
    """A result whose device memory is on the host. It is pickled when it is written to disk."""

    def __init__(self, value: Any) -> None:
        self.rest, self.buffers, parts = take_apart(value)
        self.parts = [serialize(part) for part in parts]

    def restore(self) -> Any:
        parts = [deserialize(header, frames) for header, frames in self.parts]
        return put_together(self.rest, self.buffers, parts)

    def _frames(self) -> Iterator[memoryview]:
        yield from (memoryview(buffer) for buffer in self.buffers)
        for _, frames in self.parts:
            yield from frames

    def __sizeof__(self) -> int:
        own = object.__sizeof__(self) + len(self.rest)
        return own + sum(frame.nbytes for frame in self._frames())

    def __reduce_ex__(self, _protocol: Any) -> tuple[Any, ...]:
        parts = [
            (header, [PickleBuffer(frame) for frame in frames]) for header, frames in self.parts
        ]
        return _spilled, (self.rest, self.buffers, parts)


def _spilled(rest: bytes, buffers: list[Any], parts: list[Any]) -> Spilled:
    value = Spilled.__new__(Spilled)
    value.rest, value.buffers = rest, buffers
    value.parts = [(header, [memoryview(frame) for frame in frames]) for header, frames in parts]
    return value


def _limit_pool(limit: int, buffer: SpillBuffer) -> None:
    """Limit the default pool of device memory; when it is full, results are spilled."""
    pool = zeusm.memory.get_pool("device")
    pool.set_limit(limit)
    reference = weakref.ref(buffer)  # The pool may outlive the worker.

    def make_room(nbytes: int) -> bool:
        found = reference()
        return found is not None and found.evict_from_device(nbytes)

    pool.set_failure_callback(make_room)
