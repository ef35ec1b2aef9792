"""Random programs over all operations of memory objects, with forks and a peer process, compared with a model.

The model of each allocation is a bytearray that each call changes synchronously. zeusm's operations stay in flight behind a
large fill, so an access that does not wait for them reads other bytes than the model.

`ZEUSM_TEST_MODEL` is the number of programs, 25 by default; 3000 take an hour. With more than the default, a failing program
is also shrunk, which takes longer.
"""

import contextlib
import functools
import gc
import os
import pickle
import signal
import traceback
import weakref

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from conftest import CLASSES
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    precondition,
    rule,
)
from model_peer import Peer

try:
    import dpnp
except ImportError:
    dpnp = None

# Python 3.12 and later warn of every fork in a process with several threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

USUAL = 25
PROGRAMS = int(os.environ.get("ZEUSM_TEST_MODEL", USUAL))
LARGEST = 300
KINDS = st.sampled_from(sorted(CLASSES))
BYTES = st.integers(0, 255)
TURNS = st.integers(0, 3)
HINTS = st.sampled_from(
    ["prefetch", "set_read_mostly", "clear_read_mostly", "set_preferred_location", "bias_uncached"]
)


def forks():
    """Whether there are forks, and the driver works in a child."""
    return hasattr(os, "fork") and zeusm.runtime().kind == "cpu"


def opens_own():
    """Whether memory of this process can be opened by its handle: Intel's driver does not support it with several GPUs."""
    return zeusm.runtime().kind == "cpu" or len(zeusm.runtime().device_names) == 1


@functools.cache
def is_exported(kind):
    """Whether memory of this kind can be exported: not shared memory that the driver migrates, and none on Windows."""
    if not zm.IPCMemoryHandle.is_available():
        return False
    try:
        CLASSES[kind](1).ipc_handle()
    except zm.IPCError as error:
        if "migrates" in str(error):
            return False
        raise
    return True


class Model:
    """The expected bytes of an allocation, and the events of the operations on it."""

    def __init__(self, size, number=None):
        self.bytes, self.events = bytearray(size), []
        self.number = number  # The peer's number of the allocation, if the peer owns it.
        self.is_mapped = number is not None

    def is_settled(self):
        return all(event.is_complete for event in self.events)

    def settle(self):
        assert all(event.wait(timeout=60) for event in self.events)
        self.events.clear()


class Slice:
    """A memory object, with the model of its allocation and its range in it."""

    def __init__(self, memory, model, start=0, stop=None, where=0, is_mapping=False):
        self.memory, self.model, self.start = memory, model, start
        self.stop = len(model.bytes) if stop is None else stop
        self.where, self.is_mapping = where, is_mapping
        # Memory of this process is, also by objects of other packages.
        self.is_exportable = not is_mapping and is_exported(memory.get_usm_type())

    def part(self, memory, first=0, last=None):
        """A piece for another object over a range of these bytes."""
        stop = self.stop if last is None else self.start + last
        part = Slice(memory, self.model, self.start + first, stop, self.where, self.is_mapping)
        part.is_exportable = self.is_exportable
        return part

    def begun(self, event):
        """Records an event. zeusm does not order operations on two mappings of the same memory, so these are waited for."""
        self.model.events.append(event)
        if self.model.is_mapped:
            self.model.settle()

    @property
    def expected(self):
        return bytes(self.model.bytes[self.start : self.stop])

    def write(self, content):
        self.model.bytes[self.start : self.start + len(content)] = content

    def __len__(self):
        return self.stop - self.start

    @property
    def is_hosts(self):
        return self.memory.get_usm_type() != "device"


def check(piece, content):
    assert bytes(content) == piece.expected


def run_child(known, settled, val):
    """The program of a forked child, which exits."""
    signal.alarm(60)
    try:
        for piece in settled:
            check(piece, piece.memory.tobytes())
        for piece in known:
            assert all(event.wait(timeout=0) for event in piece.model.events)
            piece.memory.memset(val)
            assert piece.memory.tobytes() == bytes([val]) * len(piece)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


class Programs(RuleBasedStateMachine):
    """Random programs: `slices` are memory objects, `arrays` their views, `events` those of submitted operations."""

    slices = Bundle("slices")
    arrays = Bundle("arrays")
    events = Bundle("events")
    looks = Bundle("looks")
    pickles = Bundle("pickles")

    large = None
    peer = None

    @initialize()
    def places(self):
        device = dpctl.SyclDevice("level_zero:gpu")
        context = dpctl.SyclContext([device])  # A list creates a new context.
        self.queues = [None, dpctl.SyclQueue(context, device)]
        if Programs.large is None:
            Programs.large = [zm.MemoryUSMDevice(100 << 20, queue=queue) for queue in self.queues]
            # These queues outlive the programs, as the large memory does.
            Programs.kept = self.queues
        self.queues = Programs.kept
        self.host = []
        self.known = weakref.WeakSet()
        if Programs.peer is None:
            Programs.peer = Peer()

    def made(self, piece):
        self.known.add(piece)
        return piece

    # --- making ------------------------------------------------------------------------------------

    @rule(
        target=slices, kind=KINDS, size=st.integers(1, LARGEST), where=st.integers(0, 1), val=BYTES
    )
    def allocate(self, kind, size, where, val):
        piece = Slice(CLASSES[kind](size, queue=self.queues[where]), Model(size), where=where)
        piece.memory.memset(val)
        piece.write(bytes([val]) * size)
        return self.made(piece)

    @rule(target=slices, piece=slices, start=st.integers(0, LARGEST), stop=st.integers(0, LARGEST))
    def cut(self, piece, start, stop):
        part = piece.memory[start:stop]
        first = min(start, len(piece))
        last = max(first, min(stop, len(piece)))
        if first == last:
            return multiple()
        return self.made(piece.part(part, first, last))

    @rule(target=slices, piece=slices, way=st.integers(0, 2))
    def import_again(self, piece, way):
        if way == 0:
            again = zm.as_usm_memory(piece.memory)
        elif way == 1:
            again = zm.as_usm_memory(piece.memory.view("u1"))
        else:
            again = zm.as_usm_memory(dpctl.memory.as_usm_memory(piece.memory))
        return self.made(piece.part(again))

    @rule(target=slices, piece=slices, kind=KINDS, where=st.integers(0, 1))
    def copy(self, piece, kind, where):
        copy = CLASSES[kind](piece.memory, copy=True, queue=self.queues[where])
        # Without a queue, a copy stays in the context of its source.
        copied = Slice(copy, Model(len(piece)), where=where or piece.where)
        copied.write(piece.expected)
        return self.made(copied)

    @rule(target=arrays, piece=slices, step=st.sampled_from([1, 2, -1]))
    def view(self, piece, step):
        return piece, piece.memory.view("u1")[::step], step

    @rule(target=arrays, array=arrays)
    def by_dlpack(self, array):
        piece, view, step = array
        return piece, zeusm.from_dlpack(view), step

    # --- operations --------------------------------------------------------------------------------

    def keep_busy(self, piece, turns):
        """Submits large fills, so that the next operation on the memory stays in flight."""
        for turn in range(turns):
            self.large[piece.where].memset_async(turn)

    @rule(target=events, piece=slices, val=BYTES, turns=TURNS, before=st.none() | events)
    def fill_later(self, piece, val, turns, before):
        self.keep_busy(piece, turns)
        event = piece.memory.memset_async(val, depends=before)
        piece.write(bytes([val]) * len(piece))
        piece.begun(event)
        return event

    @rule(target=events, piece=slices, seed=BYTES, turns=TURNS, before=st.none() | events)
    def write_later(self, piece, seed, turns, before):
        self.keep_busy(piece, turns)
        content = bytearray((seed + at) % 256 for at in range(len(piece)))
        event = piece.memory.copy_from_host_async(content, depends=before)
        piece.write(content)
        piece.begun(event)
        return event

    @rule(target=events, piece=slices, turns=TURNS, before=st.none() | events)
    def read_later(self, piece, turns, before):
        self.keep_busy(piece, turns)
        content = bytearray(len(piece))
        event = piece.memory.copy_to_host_async(content, depends=before)
        self.host.append((event, content, piece.expected))
        piece.begun(event)
        return event

    @rule(target=events, piece=slices, hint=HINTS, turns=TURNS, before=st.none() | events)
    def hint_later(self, piece, hint, turns, before):
        self.keep_busy(piece, turns)
        if hint == "prefetch":
            event = piece.memory.prefetch(depends=before)
        else:
            event = piece.memory.mem_advise(hint, depends=before)
        piece.begun(event)
        return event

    @rule(target=events, to=slices, source=slices, turns=TURNS, before=st.none() | events)
    def copy_later(self, to, source, turns, before):
        if len(source) > len(to) or to.model is source.model:
            return multiple()
        self.keep_busy(to, turns)
        event = to.memory.copy_from_device_async(source.memory, depends=before)
        to.write(source.expected)
        to.begun(event)
        source.begun(event)
        return event

    @rule(to=slices, source=slices)
    def copy_now(self, to, source):
        if len(source) <= len(to) and to.model is not source.model:
            to.memory.copy_from_device(source.memory)
            to.write(source.expected)

    @rule(piece=slices, val=BYTES)
    def fill_now(self, piece, val):
        piece.memory.memset(val)
        piece.write(bytes([val]) * len(piece))

    @rule(piece=slices, seed=BYTES)
    def write_now(self, piece, seed):
        content = bytes((seed - at) % 256 for at in range(len(piece)))
        piece.memory.copy_from_host(content)
        piece.write(content)

    @rule(array=arrays, val=BYTES)
    def write_array(self, array, val):
        piece, view, step = array
        content = np.full(view.shape, val, "u1")
        view.copy_from_host(content)
        expected = np.frombuffer(piece.expected, "u1").copy()
        expected[::step] = val
        piece.write(expected.tobytes())

    @rule(piece=slices, val=BYTES)
    def write_by_others(self, piece, val):
        dpctl.memory.as_usm_memory(piece.memory).copy_from_host(np.full(len(piece), val, "u1"))
        piece.write(bytes([val]) * len(piece))

    @rule(piece=slices, val=BYTES)
    def write_in_place(self, piece, val):
        if piece.is_hosts:
            np.asarray(piece.memory)[...] = val
            piece.write(bytes([val]) * len(piece))

    @rule(event=events)
    def wait(self, event):
        assert event.wait(timeout=60)

    # --- reading -----------------------------------------------------------------------------------

    @rule(piece=slices)
    def read(self, piece):
        check(piece, piece.memory.tobytes())

    @rule(piece=slices)
    def read_to_host(self, piece):
        check(piece, piece.memory.copy_to_host(bytearray(len(piece))))

    @rule(piece=slices)
    def read_by_others(self, piece):
        check(piece, dpctl.memory.as_usm_memory(piece.memory).copy_to_host())

    @rule(array=arrays)
    def read_array(self, array):
        piece, view, step = array
        assert bytes(view.copy_to_host()) == piece.expected[::step]
        if piece.is_hosts:
            assert np.asarray(view).tobytes() == piece.expected[::step]

    @rule(array=arrays)
    def read_array_by_others(self, array):
        piece, view, step = array
        if dpnp is not None and step > 0:  # dpnp rejects the dictionary of a reversed array.
            taken = dpnp.asarray(view)
            assert dpnp.asnumpy(taken).tobytes() == piece.expected[::step]

    @rule(target=looks, piece=slices)
    def look(self, piece):
        if not piece.is_hosts:
            return multiple()
        view = memoryview(piece.memory)
        check(piece, view)
        return piece, view

    @rule(look=looks)
    def look_again(self, look):
        """Operations submitted after the view was made need a wait: for an event, or by another access as here."""
        piece, view = look
        memoryview(piece.memory).release()
        check(piece, view)

    @rule(target=pickles, piece=slices, protocol=st.integers(2, 5), aside=st.booleans())
    def pickle(self, piece, protocol, aside):
        buffers = [] if aside and protocol == 5 else None
        keywords = {} if buffers is None else {"buffer_callback": buffers.append}
        content = pickle.dumps(piece.memory, protocol, **keywords)
        if buffers is not None:
            buffers = [bytes(buffer) for buffer in buffers]
        return content, buffers, piece.expected

    @rule(target=slices, kept=pickles)
    def unpickle(self, kept):
        content, buffers, expected = kept
        memory = pickle.loads(content, buffers=buffers)
        piece = Slice(memory, Model(len(expected)))
        piece.write(expected)
        check(piece, memory.tobytes())
        return self.made(piece)

    # --- other processes ---------------------------------------------------------------------------

    @precondition(lambda _: zm.IPCMemoryHandle.is_available())
    @rule(target=slices, piece=slices, where=st.integers(0, 1))
    def open_own(self, piece, where):
        """Opens a handle of this process: the same memory at another address."""
        if not piece.is_exportable:
            unsupported = "pass that .*handle on|does not own|migrates"
            with pytest.raises((ValueError, zm.IPCError), match=unsupported):
                piece.memory.ipc_handle()
            return multiple()
        if not opens_own():
            with pytest.raises(zm.IPCError, match="memory of this process"):
                zm.IPCMemoryHandle.open(bytes(piece.memory.ipc_handle()), self.queues[where])
            return multiple()
        piece.model.settle()
        piece.model.is_mapped = True
        # Memory that came by another package can be opened while its handle is open.
        with piece.memory.ipc_handle() as handle:
            opened = zm.IPCMemoryHandle.open(bytes(handle), self.queues[where])
        mapping = piece.part(opened)
        mapping.where, mapping.is_mapping, mapping.is_exportable = where, True, False
        check(mapping, opened.tobytes())
        return self.made(mapping)

    @precondition(lambda _: zm.IPCMemoryHandle.is_available())
    @rule(
        target=slices, kind=KINDS, size=st.integers(1, LARGEST), where=st.integers(0, 1), val=BYTES
    )
    def open_other(self, kind, size, where, val):
        if not is_exported(kind):
            return multiple()
        number, handle = self.peer.allocate(kind, size, val)
        memory = zm.IPCMemoryHandle.open(handle, self.queues[where])
        piece = Slice(memory, Model(size, number), where=where, is_mapping=True)
        piece.write(bytes([val]) * size)
        check(piece, memory.tobytes())
        return self.made(piece)

    @precondition(lambda _: zm.IPCMemoryHandle.is_available())
    @rule(piece=slices, val=st.none() | BYTES)
    def pass_to_the_peer(self, piece, val):
        """The peer opens a handle of the memory, reads it, and may fill it."""
        if not piece.is_exportable:
            return
        piece.model.settle()
        with piece.memory.ipc_handle() as handle:
            check(piece, self.peer.use(bytes(handle), val))
        if val is not None:
            piece.write(bytes([val]) * len(piece))

    @rule(piece=slices, val=st.none() | BYTES)
    def compare_with_peer(self, piece, val):
        """The peer's own object reads the bytes that were written here."""
        model = piece.model
        if model.number is None:
            return
        assert self.peer.read(model.number, val) == model.bytes
        if val is not None:
            model.bytes[:] = bytes([val]) * len(model.bytes)

    @precondition(lambda self: forks())
    @rule(val=BYTES, settles=st.booleans())
    def fork(self, val, settles):
        """A child reads inherited memory that has no operation in flight, and may write to all inherited memory."""
        known = list(self.known)
        if settles:
            for piece in known:
                piece.model.settle()
        settled = [piece for piece in known if piece.model.is_settled()]
        child = os.fork()
        if child == 0:
            run_child(known, settled, val)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for piece in known:
            if piece.is_mapping:  # Other memory is copied on write in the child.
                piece.write(bytes([val]) * len(piece))

    # --- releasing ---------------------------------------------------------------------------------

    @rule(piece=consumes(slices))
    def let_go(self, piece):
        del piece

    @rule(size=st.integers(1, LARGEST), val=BYTES)
    def close(self, size, val):
        memory = zm.MemoryUSMShared(size)
        event = memory.memset_async(val)
        with contextlib.suppress(BufferError):  # Raised while an operation is in flight.
            memory.close()
        event.wait()
        memory.close()
        assert memory.closed

    def teardown(self):
        for event, content, expected in getattr(self, "host", []):
            event.wait()
            assert content == expected
        gc.collect()


Programs.TestCase.settings = settings(
    max_examples=PROGRAMS,
    stateful_step_count=40,
    deadline=None,
    database=None,
    phases=list(Phase) if PROGRAMS > USUAL else [Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TestPrograms = Programs.TestCase
