"""Random programs over arrays, compared with NumPy: records and their fields, views, assignment, copies between devices and
contexts, and every way in which arrays leave a process or come back, while operations are in flight.

`ZEUSM_TEST_MODEL` is the number of programs, 25 by default, as for `test_model.py`.
"""

import copy
import os
import pickle
from pathlib import Path

import dpctl
import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from arrays import DTYPES, SHAPES, indices
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, multiple, precondition, rule

pytestmark = pytest.mark.once

try:
    from distributed.protocol import deserialize, serialize
except ImportError:  # Only one environment has Dask.
    serialize = None

USUAL = 25
PROGRAMS = int(os.environ.get("ZEUSM_TEST_MODEL", USUAL))
RECORDS = [
    np.dtype([("x", "f4"), ("y", "f8"), ("z", "?")], align=True),
    np.dtype([("x", "u1"), ("y", "i8", (2,)), ("z", "c8")]),
    np.dtype([("x", [("a", "u2"), ("b", "f2", (2, 1))]), ("y", "i4")], align=True),
]
TYPES = st.sampled_from([*map(np.dtype, DTYPES), *RECORDS])
KINDS = st.sampled_from(["device", "shared", "host"])
SEEDS = st.integers(0, 100)
PLACES = st.integers(0, 3)


def places():
    """The default, the last device, and another context of each."""
    devices = dpctl.get_devices(backend="level_zero")
    ends = [devices[0], devices[-1]]
    # A list creates a new context.
    contexts = [dpctl.SyclQueue(dpctl.SyclContext([device]), device) for device in ends]
    return [None, dpctl.SyclQueue(ends[1]), *contexts]


def filled(shape, dtype, seed):
    """Elements that depend on the seed, and that all types can represent."""
    content = np.zeros(shape, dtype)
    if dtype.names is None:
        content[...] = (np.arange(content.size).reshape(shape) + seed) % 101
    else:
        for number, name in enumerate(dtype.names):
            content[name] = filled(content[name].shape, dtype[name].base, seed + number)
    return content


def leaves(array):
    """The bytes of all elements, without padding."""
    if array.dtype.names is None:
        return [array.tobytes()]
    return [leaf for name in array.dtype.names for leaf in leaves(array[name])]


class Pair:
    """An array, and the NumPy array that it has to equal."""

    def __init__(self, array, model):
        self.array, self.model = array, model
        self.check()

    def check(self):
        found = self.array.copy_to_host()
        assert found.dtype == self.model.dtype
        assert found.shape == self.model.shape
        assert leaves(found) == leaves(self.model)

    def copied(self, array):
        """A pair of a copy of the array."""
        assert array.usm_type == self.array.usm_type
        return Pair(array, self.model.copy())

    def element_strides(self):
        """The strides and the offset in elements, unless the array is a field at other distances."""
        try:
            return self.array.strides, self.array.offset
        except ValueError:
            return None

    def is_exportable(self):
        """Whether the interface can describe the array: distances in elements, and aligned elements unless they are records."""
        if not self.array.size:
            return True
        alignment = 1 if self.model.dtype.names else self.model.dtype.alignment
        return self.element_strides() is not None and self.array._pointer % alignment == 0


def expect(error, *reasons):
    """Raises the error unless it gives one of the reasons."""
    if not any(reason in str(error) for reason in reasons):
        raise error


class Imported:
    """An object with nothing but a dictionary, which keeps the memory alive."""

    def __init__(self, owner, dictionary):
        self.owner, self.__sycl_usm_array_interface__ = owner, dictionary


class Arrays(RuleBasedStateMachine):
    pairs = Bundle("pairs")
    kept = None

    def __init__(self):
        super().__init__()
        if Arrays.kept is None:
            queues = places()
            gates = [zm.MemoryUSMDevice(30 << 20, queue=queue) for queue in queues]
            Arrays.kept = queues, gates
        self.queues, self.gates = Arrays.kept

    def keep_busy(self, place, seed):
        """Leaves work in flight, before which the next operation must not be executed."""
        if seed % 3 == 0:
            self.gates[place].memset_async(seed)

    # --- making ------------------------------------------------------------------------------------

    @rule(
        target=pairs,
        kind=KINDS,
        place=PLACES,
        dtype=TYPES,
        shape=SHAPES,
        order=st.sampled_from("CF"),
        seed=SEEDS,
    )
    def allocate(self, kind, place, dtype, shape, order, seed):
        array = zeusm.empty(shape, dtype, usm_type=kind, queue=self.queues[place], order=order)
        model = np.empty(shape, dtype, order=order)
        array[...] = model[...] = filled(shape, dtype, seed)
        return Pair(array, model)

    @rule(target=pairs, pair=pairs, data=st.data())
    def index(self, pair, data):
        key = data.draw(indices(pair.model.shape))
        whole = key if isinstance(key, tuple) else (key,)
        if Ellipsis not in whole:
            whole = (*whole, Ellipsis)  # NumPy's index of one element is no view otherwise.
        return Pair(pair.array[key], pair.model[whole])

    @rule(target=pairs, pair=pairs, number=st.integers(0, 2))
    def field(self, pair, number):
        names = pair.model.dtype.names
        if names is None:
            return multiple()
        name = names[number % len(names)]
        return Pair(pair.array[name], pair.model[name])

    @rule(target=pairs, pair=pairs, data=st.data())
    def transpose(self, pair, data):
        axes = data.draw(st.permutations(range(pair.model.ndim)))
        return Pair(pair.array.transpose(axes), pair.model.transpose(axes))

    @rule(target=pairs, pair=pairs)
    def flatten(self, pair):
        return Pair(pair.array.reshape(-1, copy=True), pair.model.reshape(-1).copy())

    # --- exchange ----------------------------------------------------------------------------------

    @rule(target=pairs, pair=pairs, seed=SEEDS)
    def by_dictionary(self, pair, seed):
        """Imports a dictionary whose pointer is that of the memory, with the strides and the offset of the array."""
        if not pair.is_exportable():
            with pytest.raises(ValueError, match="multiple|align"):
                _ = pair.array.__sycl_usm_array_interface__
            return multiple()
        dictionary = pair.array.__sycl_usm_array_interface__
        if seed % 2:
            array = zeusm.from_sycl_usm_array_interface(dictionary, owner=pair.array)
        else:
            array = zeusm.as_usm_array(Imported(pair.array, dictionary))
        assert array.sycl_device == pair.array.sycl_device
        return Pair(array, pair.model)

    @rule(target=pairs, pair=pairs)
    def by_dlpack(self, pair):
        try:
            array = zeusm.from_dlpack(pair.array)
        except BufferError as error:
            expect(error, "record", "default", "multiple", "align")
            return multiple()
        if array.sycl_context != pair.array.sycl_context or not pair.is_exportable():
            # DLPack implies the default context, and describes aligned elements only.
            return pair.copied(array)
        assert not pair.array.size or array._pointer == pair.array._pointer
        return Pair(array, pair.model)

    @rule(target=pairs, pair=pairs, protocol=st.integers(2, 5), aside=st.booleans())
    def by_pickle(self, pair, protocol, aside):
        buffers = [] if aside and protocol == 5 else None
        keywords = {} if buffers is None else {"buffer_callback": buffers.append}
        content = pickle.dumps(pair.array, protocol, **keywords)
        if buffers is not None:
            buffers = [bytes(buffer) for buffer in buffers]
        array = pickle.loads(content, buffers=buffers)
        assert array.sycl_device == pair.array.sycl_device
        return pair.copied(array)

    @rule(target=pairs, pair=pairs, deep=st.booleans())
    def by_copy(self, pair, deep):
        array = copy.deepcopy(pair.array) if deep else copy.copy(pair.array)
        assert array.sycl_context == pair.array.sycl_context
        return pair.copied(array)

    @rule(target=pairs, pair=pairs)
    def by_dask(self, pair):
        if serialize is None:
            return multiple()
        header, frames = serialize(pair.array)
        return pair.copied(deserialize(header, [bytearray(frame) for frame in frames]))

    @rule(target=pairs, pair=pairs, kind=KINDS, place=PLACES, seed=SEEDS)
    def by_another_device(self, pair, kind, place, seed):
        self.keep_busy(place, seed)
        queue = self.queues[place] or dpctl.SyclQueue("level_zero:gpu")
        array = zeusm.asarray(pair.array, usm_type=kind, queue=queue, copy=True)
        assert array.sycl_device == queue.sycl_device
        if kind != "host":
            found = zeusm.pointer_attributes(array._pointer, array.sycl_context)
            assert found.sycl_device == queue.sycl_device
        return Pair(array, pair.model.copy())

    @precondition(lambda _: zm.IPCMemoryHandle.is_available())
    @rule(pair=pairs)
    def by_handle(self, pair):
        """A handle of this process: the same elements at another address."""
        where = pair.element_strides()
        if where is None:
            return
        try:
            handle = pair.array.base.ipc_handle()
            opened = zm.IPCMemoryHandle.open(bytes(handle), pair.array.sycl_device)
        except (ValueError, zm.IPCError) as error:
            expect(error, "does not own", "migrates", "no bytes", "memory of this process")
            return
        Pair(opened.view(pair.model.dtype, pair.model.shape, *where), pair.model)

    @rule(pair=pairs, seed=SEEDS)
    def in_place(self, pair, seed):
        if pair.array.usm_type == "device":
            return
        view = np.asarray(pair.array)
        assert leaves(view) == leaves(pair.model)
        view[...] = pair.model[...] = filled(pair.model.shape, pair.model.dtype, seed)

    # --- writing -----------------------------------------------------------------------------------

    @rule(pair=pairs, seed=SEEDS, place=PLACES, data=st.data())
    def assign(self, pair, seed, place, data):
        """Host data of the same or another type, which NumPy converts and broadcasts."""
        key = data.draw(indices(pair.model.shape))
        selected = pair.model[key]
        shape = tuple(1 if data.draw(st.booleans()) else size for size in selected.shape)
        dtype = data.draw(st.sampled_from([selected.dtype, np.dtype("i2"), np.dtype("f8")]))
        self.keep_busy(place, seed)
        values = filled(shape, dtype, seed)
        pair.array[key] = values
        pair.model[key] = values
        pair.check()

    @rule(pair=pairs, source=pairs, seed=SEEDS, place=PLACES)
    def assign_usm(self, pair, source, seed, place):
        """USM of any place, which may overlap the target."""
        if source.model.dtype != pair.model.dtype:
            return
        smallest = [*map(min, zip(pair.model.shape, source.model.shape, strict=False))]
        key = (*(slice(size) for size in smallest), Ellipsis)
        if pair.model[key].shape != source.model[key].shape:
            return
        self.keep_busy(place, seed)
        content = source.model[key].copy()
        pair.array[key] = source.array[key]
        pair.model[key] = content
        pair.check()

    @rule(pair=pairs, start=st.integers(0, 5), step=st.sampled_from([1, -1]))
    def assign_own(self, pair, start, step):
        """Elements of the array itself."""
        if not pair.model.ndim or start >= len(pair.model):
            return
        size = len(pair.model) - start
        content = pair.model[start:][::step].copy()
        pair.array[:size] = pair.array[start:][::step]
        pair.model[:size] = content
        pair.check()

    @rule(pair=pairs, seed=SEEDS)
    def write(self, pair, seed):
        """From a host array with other strides."""
        wide = filled([2 * size for size in pair.model.shape], pair.model.dtype, seed)
        content = wide[tuple(slice(None, None, -2) for _ in pair.model.shape)]
        pair.array.copy_from_host(content)
        pair.model[...] = content

    @rule(pair=pairs)
    def look(self, pair):
        pair.check()


Arrays.TestCase.settings = settings(
    max_examples=PROGRAMS,
    stateful_step_count=40,
    deadline=None,
    database=None,
    phases=list(Phase) if PROGRAMS > USUAL else [Phase.generate],
    suppress_health_check=list(HealthCheck),
)


TestArrays = Arrays.TestCase


@pytest.mark.parametrize("peer_access", [0, 1])
def test_programs_on_two_devices(fresh, peer_access):
    """The devices of a process cannot be changed, so this is another one."""
    env = {
        "ZEUSM_CPU_DEVICES": "2",
        "ZEUSM_CPU_PEER_ACCESS": str(peer_access),
        "ONEAPI_DEVICE_SELECTOR": "level_zero:gpu",
        "ZEUSM_TEST_MODEL": str(min(PROGRAMS, 10 * USUAL)),
    }
    test = Path(__file__).resolve()
    options = ["-q", "-p", "no:cacheprovider", "-k", "TestArrays", "--rootdir", test.parents[2]]
    assert "1 passed" in fresh.run("-m", "pytest", *options, test, env=env).stdout
