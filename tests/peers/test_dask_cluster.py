"""A cluster of two worker processes computes with zeusm's arrays, by bytes and by IPC, and survives the death of a worker."""

import os
import signal
import time

import numpy as np
import pytest
import zeusm
import zeusm_dask
from distributed import Client, LocalCluster, Status, get_worker, wait
from distributed.client import FutureCancelledError

SIZE = 1 << 18


@pytest.fixture(scope="module")
def client():
    data = (zeusm_dask.SpillBuffer, {"device_limit": 3 * SIZE, "pool_limit": 64 * SIZE})
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",  # Any port: None would take 8787.
        data=data,
        memory_limit="2 GB",
        preload=["zeusm"],
    )
    with cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def workers(client):
    """The addresses of the workers, once those that a test has killed are replaced. A nanny does not replace a worker that
    dies before the nanny knows that it runs."""
    client.wait_for_workers(2, timeout=120)
    deadline = time.monotonic() + 120
    nannies = client.cluster.workers.values()
    while not all(nanny.process.status == Status.running == nanny.status for nanny in nannies):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # It asks the scheduler, whereas others refresh `scheduler_info` with fewer workers.
    return list(client.nthreads())


@pytest.fixture
def ipc(client):
    """Transfers by IPC for one test; returns their counts before it."""
    client.register_plugin(zeusm_dask.IPC())
    yield counts(client)
    client.unregister_worker_plugin(zeusm_dask.IPC.name)


def counts(client):
    per_worker = client.run(zeusm_dask.transfers).values()
    return {name: sum(one[name] for one in per_worker) for name in ("sent", "received", "failed")}


def make(number, usm_type="device", size=SIZE):
    return zeusm.asarray(np.full(size, number, "u1"), usm_type=usm_type)


def total(*arrays):
    return sum(int(array.copy_to_host().sum()) for array in arrays)


def doubled(array):
    import dpnp

    result = dpnp.from_dlpack(array) * 2
    result.sycl_queue.wait()
    return zeusm.from_dlpack(result)


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_results_are_computed_sent_and_gathered(client, workers, usm_type):
    first = client.submit(make, 3, usm_type, workers=[workers[0]], pure=False)
    second = client.submit(doubled, first, workers=[workers[0]], pure=False)
    assert client.submit(total, first, second, workers=[workers[1]]).result() == 9 * SIZE
    gathered = second.result()
    assert gathered.usm_type == usm_type
    assert total(gathered) == 6 * SIZE
    (scattered,) = client.scatter([make(5, usm_type)], workers=[workers[1]])
    assert client.submit(total, scattered, workers=[workers[0]]).result() == 5 * SIZE


def test_workers_that_preload_zeusm_find_the_device(client):
    def devices():
        import dpctl

        return dpctl.get_num_devices(backend="level_zero")

    assert all(client.run(devices).values())


def test_the_scheduler_knows_the_size(client):
    future = client.submit(make, 3, pure=False)
    wait(future)
    nbytes = client.run_on_scheduler(
        lambda dask_scheduler: dask_scheduler.tasks[future.key].get_nbytes()
    )
    assert SIZE <= nbytes < SIZE + 1000


def test_results_beyond_the_limit_are_spilled(client, workers):
    futures = client.map(make, range(8), workers=[workers[0]], pure=False)
    wait(futures)

    def on_device():
        data = get_worker().data
        return len(data.device), len(data.host)

    assert client.submit(on_device, workers=[workers[0]], pure=False).result() == (3, 5)
    sums = client.map(total, futures, workers=[workers[1]])
    assert client.gather(sums) == [number * SIZE for number in range(8)]


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_workers_of_a_machine_send_by_ipc(client, workers, ipc, usm_type):
    arrays = client.map(make, range(5), usm_type=usm_type, workers=[workers[0]], pure=False)
    sums = client.map(total, arrays, workers=[workers[1]], pure=False)
    assert client.gather(sums) == [number * SIZE for number in range(5)]
    after = counts(client)
    assert after["received"] - ipc["received"] == after["sent"] - ipc["sent"] == 5
    assert after["failed"] == ipc["failed"]
    assert client.gather(client.map(lambda array: array.usm_type, arrays)) == [usm_type] * 5


def test_results_of_one_slab_share_a_descriptor(client, workers, ipc):
    """UMF#403: descriptors for each result end a worker at the usual limit of 1024 open files."""

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    small = {"size": 100_000, "workers": [workers[0]], "pure": False}
    arrays = client.map(make, range(64), **small)
    wait(arrays)
    before = client.run(descriptors)
    sums = client.map(total, arrays, workers=[workers[1]], pure=False)
    assert client.gather(sums) == [number * 100_000 for number in range(64)]
    assert counts(client)["received"] - ipc["received"] == 64
    grown = {worker: count - before[worker] for worker, count in client.run(descriptors).items()}
    assert max(grown.values()) < 32, grown  # One for each slab, which has several results.


def test_memory_of_dpnp_goes_by_ipc(client, workers, ipc):
    def of_dpnp():
        import dpnp

        return zeusm.from_dlpack(dpnp.full(SIZE, 3, dtype="u1"))

    for _ in range(5):
        future = client.submit(of_dpnp, workers=[workers[0]], pure=False)
        assert client.submit(total, future, workers=[workers[1]]).result() == 3 * SIZE
    after = counts(client)
    assert after["received"] - ipc["received"] == after["sent"] - ipc["sent"] == 5
    assert after["failed"] == ipc["failed"]


def test_what_cannot_go_by_ipc_goes_as_bytes(client, workers, ipc):
    """Small and strided arrays, and results that go to the client."""

    def strided():
        return make(3, size=2 * SIZE)[::2]

    for function, size in ((strided, SIZE), (lambda: make(3, size=10), 10)):
        future = client.submit(function, workers=[workers[0]], pure=False)
        assert client.submit(total, future, workers=[workers[1]]).result() == 3 * size
        assert total(future.result()) == 3 * size
    assert counts(client) == ipc


def test_a_handle_that_cannot_be_opened_is_replaced_by_bytes(client, workers, ipc):
    def forget_the_device():
        """The handles of this worker are for a device that no worker has."""
        from zeusm_dask import _ipc

        original = _ipc.IPCMemoryHandle

        class Unusable:
            from_bytes = original.from_bytes

            @staticmethod
            def open(handle, device=None):
                raise _ipc.IPCError("refused by this test")

        _ipc.IPCMemoryHandle = Unusable

    def restore():
        from zeusm.memory import IPCMemoryHandle
        from zeusm_dask import _ipc

        _ipc.IPCMemoryHandle = IPCMemoryHandle

    client.run(forget_the_device, workers=[workers[1]])
    try:
        array = client.submit(make, 3, workers=[workers[0]], pure=False)
        assert client.submit(total, array, workers=[workers[1]]).result(60) == 3 * SIZE
    finally:
        client.run(restore, workers=[workers[1]])
    after = counts(client)
    assert after["failed"] == ipc["failed"] + 1
    assert after["received"] == ipc["received"]


def slow(array):
    time.sleep(0.3)
    return total(array)


@pytest.mark.parametrize("way", ["bytes", "ipc"])
def test_the_results_of_a_worker_that_dies_are_computed_again(client, workers, way):
    if way == "ipc":
        client.register_plugin(zeusm_dask.IPC())
    arrays = client.map(make, range(20), workers=[workers[0]], allow_other_workers=True, pure=False)
    wait(arrays)
    sums = client.map(slow, arrays, workers=[workers[1]], allow_other_workers=True, pure=False)
    wait(sums[:1], timeout=60, return_when="FIRST_COMPLETED")
    pids = client.run(os.getpid)
    os.kill(pids[workers[0]], signal.SIGKILL)
    assert client.gather(sums) == [number * SIZE for number in range(20)]


def test_data_that_cannot_be_computed_again_are_an_error(client, workers):
    (scattered,) = client.scatter([make(5)], workers=[workers[0]], hash=False)
    pids = client.run(os.getpid)
    os.kill(pids[workers[0]], signal.SIGKILL)
    deadline = time.monotonic() + 60
    while scattered.status != "cancelled" and time.monotonic() < deadline:
        time.sleep(0.1)
    with pytest.raises(FutureCancelledError, match="cancelled"):
        scattered.result(timeout=30)
