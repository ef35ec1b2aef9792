"""K-means of handwritten digits on two worker processes: Dask moves zeusm's arrays, and dpnp computes on them in place.

Needs dask, distributed, dpnp and scikit-learn.
"""

import numpy as np
import zeusm
import zeusm_dask
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits

CLASSES = 10


def nearest(block, centres):
    """Return, for each centre, the sum of the rows of the block that are nearest to it, and their number."""
    import dpnp

    rows, centres = dpnp.from_dlpack(block), dpnp.from_dlpack(centres)
    distances = ((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    is_nearest = (distances.argmin(axis=1)[:, None] == dpnp.arange(CLASSES)).astype("f4")
    sums = (is_nearest[:, :, None] * rows[:, None, :]).sum(axis=0)
    result = dpnp.concat([sums, is_nearest.sum(axis=0)[:, None]], axis=1)
    return zeusm.from_dlpack(result)


def means(*parts):
    """Return the new centres."""
    import dpnp

    total = sum(dpnp.from_dlpack(part) for part in parts)
    result = total[:, :-1] / dpnp.maximum(total[:, -1:], 1)
    return zeusm.from_dlpack(result)


def with_numpy(rows, centres, steps):
    """The same computation, to compare with."""
    for _ in range(steps):
        labels = ((rows[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.stack([rows[labels == number].mean(axis=0) for number in range(CLASSES)])
    return centres


def main(steps=5):
    digits = load_digits().data.astype("f4")
    first = digits[:CLASSES]
    # Each worker stores at most 256 KiB of results on its device, and spills others to the host and to disk.
    data = (zeusm_dask.SpillBuffer, {"device_limit": "256 KiB", "host_limit": "1 MiB"})
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", data=data)
    with cluster, Client(cluster) as client:
        client.register_plugin(zeusm_dask.IPC())  # From worker to worker without sockets.
        blocks = client.scatter([zeusm.asarray(block) for block in np.array_split(digits, 4)])
        centres = client.scatter(zeusm.asarray(first))
        for _ in range(steps):
            parts = [client.submit(nearest, block, centres) for block in blocks]
            centres = client.submit(means, *parts)
        result = centres.result()
    assert result.usm_type == "device"
    assert np.allclose(result.copy_to_host(), with_numpy(digits, first, steps), atol=1e-3)
    print(
        f"{CLASSES} centres of {len(digits)} digits, computed by two processes on {result.sycl_device.name}"
    )


if __name__ == "__main__":
    main()
