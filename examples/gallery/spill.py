"""A Dask job whose results do not fit on the device: its worker spills them to the host and to disk, and they come back for the sum."""

import sys

import numpy as np
import zeusm
import zeusm_dask
from distributed import Client, LocalCluster

BLOCKS, LENGTH = 12, 1 << 18
LIMITS = {"device_limit": "4 MiB", "host_limit": "4 MiB"}
COLOURS = {"device": "#e69f00", "host": "#0072b2", "disk": "#999999"}


def block(number):
    """A result of 1 MiB in device memory."""
    return zeusm.asarray(np.full(LENGTH, number, "f4"))


def total(array):
    import dpnp

    return float(dpnp.sum(dpnp.from_dlpack(array)))


def where(dask_worker):
    """How many results the worker has, and the MiB of them by the place where they are."""
    data = dask_worker.data
    found = data.device.total_weight, data.host.fast.total_weight, data.spilled_total.disk
    return len(data), [size / (1 << 20) for size in found]


def chart(levels):
    """A bar for each moment, as SVG."""
    width, height, room = 22, 14, 40
    right, bottom = room + width * len(levels), 20 + height * (BLOCKS + 1)
    parts = []
    for moment, sizes in enumerate(levels):
        y = bottom
        for colour, size in zip(COLOURS.values(), sizes, strict=True):
            y -= size * height
            parts.append(
                f'<rect x="{room + moment * width}" y="{y:.1f}" width="{width - 4}" height="{size * height:.1f}" fill="{colour}"/>'
            )
    for size in range(0, BLOCKS + 1, 4):
        parts.append(
            f'<text x="{room - 6}" y="{bottom - size * height + 4}" text-anchor="end">{size}</text>'
        )
    for number, (place, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{room + 70 * number}" y="14" fill="{colour}">■ {place}</text>')
    half = room + width * len(levels) / 2
    parts.append(f'<text x="{room}" y="{bottom + 16}">MiB, as the blocks are made</text>')
    parts.append(f'<text x="{half + 4}" y="{bottom + 16}">and as each is summed and freed</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right} {bottom + 24}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def main(path):
    levels = []
    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=":0",
        data=(zeusm_dask.SpillBuffer, LIMITS),
    )
    with cluster, Client(cluster) as client:

        def look(wanted):
            """Note where the results are, once the worker has so many."""
            count = None
            while count != wanted:
                ((count, found),) = client.run(where).values()
            levels.append(found)

        blocks, sums = [], []
        for number in range(BLOCKS):
            blocks.append(client.submit(block, number))
            look(number + 1)
        while blocks:
            sums.append(client.submit(total, blocks[0]).result())
            del blocks[0]  # The worker frees it.
            look(len(blocks))
    assert sums == [number * LENGTH for number in range(BLOCKS)]
    with open(path, "w") as file:
        file.write(chart(levels))
    most = [max(sizes) for sizes in zip(*levels, strict=True)]
    print(
        "MiB at most:",
        ", ".join(f"{size:.0f} on {place}" for place, size in zip(COLOURS, most, strict=True)),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
