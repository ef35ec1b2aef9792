"""Objects for memory that has another object: which SYCL queue they have, and that no work on the bytes is missed."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from tensors import tensor
from test_waiting import SIZE, slowly

dpctl = pytest.importorskip("dpctl")
dpctl_memory = pytest.importorskip("dpctl.memory")

NAME = "level_zero:gpu"


@pytest.fixture
def shared_queue():
    """The queue of dpctl's and dpnp's arrays."""
    return dpctl.get_device_cached_queue(dpctl.SyclDevice(NAME))


@pytest.fixture
def other():
    """Another queue in the same context."""
    return dpctl.SyclQueue(NAME)


def filled(usm_type, value, queue):
    """dpctl's memory with these bytes."""
    memory = dpctl_memory.MemoryUSMHost(SIZE, queue=queue)
    memory.memset(value)
    return memory


class TestTheSharedQueue:
    def test_is_meant_by_a_filter_string(self, shared_queue):
        array = zeusm.empty(8, device=NAME)
        assert array.sycl_queue == shared_queue
        assert zm.MemoryUSMShared(8, queue=NAME).sycl_queue == shared_queue

    @pytest.mark.parametrize("make", [zm.MemoryUSMDevice, zeusm.empty], ids=["memory", "array"])
    def test_is_that_of_a_pickle(self, make, shared_queue):
        one, two = pickle.loads(pickle.dumps((make(8), make(8))))
        assert one.sycl_queue == two.sycl_queue == shared_queue


class TestAnotherQueue:
    def test_of_asarray(self, usm_type, other):
        array = zeusm.asarray(np.zeros(SIZE, "u1"), usm_type=usm_type)
        for view in (zeusm.asarray(array, queue=other), zeusm.from_dlpack(array, device=other)):
            assert view.sycl_queue == other != array.sycl_queue
            assert view.base._pointer == array.base._pointer
        assert zeusm.asarray(array, queue=array.sycl_queue).sycl_queue == array.sycl_queue

    def test_is_waited_for(self, usm_type, other):
        array = zeusm.asarray(np.zeros(SIZE, "u1"), usm_type=usm_type)
        view = zeusm.asarray(array, queue=other)
        source = filled(usm_type, 7, other)
        in_flight = slowly(other, dpctl_memory.as_usm_memory(view.base), source)
        assert (view.copy_to_host() == 7).all()
        del in_flight

    def test_comes_after_the_work_on_the_first(self, usm_type, shared_queue, other):
        array = zeusm.asarray(np.zeros(SIZE, "u1"), usm_type=usm_type, queue=shared_queue)
        source = filled(usm_type, 7, shared_queue)
        in_flight = slowly(shared_queue, dpctl_memory.as_usm_memory(array.base), source)
        assert (zeusm.asarray(array, queue=other).copy_to_host() == 7).all()
        del in_flight


def test_a_dlpack_import_has_the_queue_of_its_array(other):
    theirs = tensor.zeros(SIZE, dtype="u1", sycl_queue=other)
    ours = zeusm.asarray(np.zeros(SIZE, "u1"), queue=other)
    for array in (theirs, ours, ours.base):
        imported = zeusm.from_dlpack(array)
        assert imported.sycl_queue == other
    source = filled("device", 7, other)
    in_flight = slowly(other, dpctl_memory.as_usm_memory(theirs), source)
    assert (zeusm.from_dlpack(theirs).copy_to_host() == 7).all()
    in_flight = slowly(other, dpctl_memory.as_usm_memory(ours.base), source)
    assert (ours.copy_to_host() == 7).all()
    del in_flight


BY_ADDRESS = """
import dpctl.memory, numpy as np, zeusm
from test_queues_of_views import filled
from test_waiting import SIZE, slowly

queue = dpctl.get_device_cached_queue(dpctl.SyclDevice("level_zero:gpu"))
array = zeusm.asarray(np.zeros(SIZE, "u1"), usm_type="shared", queue=queue)
host = np.asarray(array)
described = dict(data=(host.ctypes.data, False), shape=(SIZE,), strides=None, typestr="|u1", version=1, syclobj=queue)
view = {view}
in_flight = slowly(queue, dpctl.memory.as_usm_memory({written}.base), filled("host", 7, queue))
print((np.asarray({read}) == 7).all())
del in_flight
"""
VIEWS = {
    "NumPy": "zeusm.from_dlpack(host)",
    "interface": "zeusm.from_sycl_usm_array_interface(described, owner=host)",
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize(("written", "read"), [("view", "array"), ("array", "view")])
def test_an_import_by_address_ends_the_skipped_waits(fresh, view, written, read):
    """In a new process, as it does so for all memory of the process."""
    tests = str(Path(__file__).parent)
    program = BY_ADDRESS.format(view=view, written=written, read=read)
    assert fresh(program, env={"PYTHONPATH": tests}).stdout.split() == ["True"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["the same context", "another context"])
@pytest.mark.parametrize("kind", ["import", "mapping"])
def test_operations_on_one_address_of_mapped_memory_precede_those_on_another(
    memory_class, kind, elsewhere, shared_queue
):
    device = dpctl.SyclDevice(NAME)
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device) if elsewhere else shared_queue
    memory = memory_class(SIZE)
    try:
        mapping = zm.IPCMemoryHandle.open(memory.ipc_handle(), queue)
    except zm.IPCError as error:
        pytest.skip(f"this driver does not open memory of its own process: {error}")
    if kind == "import":
        mapping = zm.as_usm_memory(dpctl_memory.as_usm_memory(mapping))
    for written, read in [(memory, mapping), (mapping, memory)]:
        memory.memset(0)
        gate = filled("host", 1, shared_queue)
        waits_for = slowly(shared_queue, dpctl_memory.MemoryUSMHost(SIZE, queue=shared_queue), gate)
        event = written.memset_async(5, depends=waits_for[0])
        assert set(read.tobytes()) == {5}
        event.wait()
        event = written.memset_async(6, depends=event)
        assert (read.view("u1")[::2].copy_to_host() == 6).all()
        event.wait()
