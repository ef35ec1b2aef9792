"""Ray stores zeusm's arrays and memory objects, and passes them to tasks and actors."""

import numpy as np
import pytest
import ray
import zeusm
import zeusm.memory as zm

CLASSES = {
    "device": zm.MemoryUSMDevice,
    "shared": zm.MemoryUSMShared,
    "host": zm.MemoryUSMHost,
}


pytestmark = pytest.mark.usefixtures("ray_cluster")


@pytest.fixture(params=CLASSES)
def usm_type(request):
    return request.param


def numbers(shape=(300, 400)):
    return np.arange(np.prod(shape), dtype="f4").reshape(shape)


@pytest.fixture
def array(usm_type):
    return zeusm.asarray(numbers(), usm_type=usm_type)


def test_arrays_are_stored_and_read(array, usm_type):
    for source, expected in (
        (array, numbers()),
        (array.T, numbers().T),
        (array[::2, 1:], numbers()[::2, 1:]),
        (array[:0], numbers()[:0]),
    ):
        received = ray.get(ray.put(source))
        assert received.usm_type == usm_type
        assert (received.copy_to_host() == expected).all()


def test_memory_is_stored_and_read(usm_type):
    memory = CLASSES[usm_type](1 << 20)
    memory.memset(7)
    received = ray.get(ray.put(memory))
    assert type(received) is CLASSES[usm_type]
    assert received.tobytes() == memory.tobytes()


def test_what_was_read_can_be_written(array):
    """Ray's buffers are read-only, and USM is not in its store: reading makes new memory."""
    reference = ray.put(array)
    first, second = ray.get(reference), ray.get(reference)
    first[...] = 0
    assert (second.copy_to_host() == numbers()).all()
    assert first._pointer != second._pointer


def test_the_store_has_one_copy(usm_type):
    """The bytes are one buffer of the pickle, out of band."""
    array = zeusm.asarray(numbers((1 << 20,)), usm_type=usm_type)
    context = ray._private.worker.global_worker.get_serialization_context()
    serialized = context.serialize(array)
    assert array.nbytes < serialized.total_bytes < array.nbytes + 10_000


@ray.remote
def add_one(array):
    import dpnp

    result = dpnp.from_dlpack(array)
    result += 1
    result.sycl_queue.wait()
    return array


def test_arguments_and_results_of_tasks(array, usm_type):
    received = ray.get(add_one.remote(array))
    assert received.usm_type == usm_type
    assert (received.copy_to_host() == numbers() + 1).all()
    assert (array.copy_to_host() == numbers()).all()
    received = ray.get(add_one.remote(add_one.remote(ray.put(array))))
    assert (received.copy_to_host() == numbers() + 2).all()


@ray.remote
class Holder:
    def keep(self, **values):
        self.values = values

    def read(self, name):
        return self.values[name]

    def handle(self, name):
        return self.values[name].base.ipc_handle()


def test_actors_keep_arrays_and_give_handles(array, usm_type):
    holder = Holder.remote()
    ray.get(holder.keep.remote(array=array, nested=[array.base]))
    assert (ray.get(holder.read.remote("array")).copy_to_host() == numbers()).all()
    (memory,) = ray.get(holder.read.remote("nested"))
    assert memory.tobytes() == array.base.tobytes()
    with zm.IPCMemoryHandle.open(ray.get(holder.handle.remote("array"))) as opened:
        assert opened.view("f4", (300, 400)).copy_to_host().tolist() == numbers().tolist()
    ray.kill(holder)


def test_a_task_that_dies_is_an_error(array):
    @ray.remote(max_retries=0)
    def die(array):
        import os

        os.kill(os.getpid(), 9)

    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(die.remote(array))
    assert (array.copy_to_host() == numbers()).all()
