"""Heat that spreads in a plate: each rank has a stripe of its rows in device memory, computes on it by dpnp, and exchanges the rows at
its borders with its neighbours by MPI."""

import sys

import numpy as np
import zeusm  # before dpnp
from mpi4py import MPI

# isort: split
import dpnp
import png

HEIGHT, WIDTH, STEPS = 180, 240, 150
SPOTS = [(45, 60, 22), (88, 130, 30), (140, 190, 18), (120, 40, 14)]


def hot_spots():
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    plate = np.zeros((HEIGHT + 2, WIDTH), "f4")  # With a cold row above and one below.
    for row, column, radius in SPOTS:
        plate[1:-1][np.hypot(y - row, x - column) < radius] = 1
    return plate


def spread(plate):
    """One step: each point but those at the edges becomes the mean of its neighbours."""
    upper, lower, left, right = plate[:-2, 1:-1], plate[2:, 1:-1], plate[1:-1, :-2], plate[1:-1, 2:]
    plate[1:-1, 1:-1] = (upper + lower + left + right) / 4


def main(path):
    world = MPI.COMM_WORLD
    rows = HEIGHT // world.size
    above = world.rank - 1 if world.rank else MPI.PROC_NULL
    below = world.rank + 1 if world.rank + 1 < world.size else MPI.PROC_NULL
    first = world.rank * rows
    array = zeusm.asarray(hot_spots()[first : first + rows + 2])
    stripe = dpnp.from_dlpack(array)
    for _ in range(STEPS):
        stripe.sycl_queue.wait()  # MPI does not wait for kernels.
        world.Sendrecv(array[1], above, recvbuf=array[-1], source=below)
        world.Sendrecv(array[-2], below, recvbuf=array[0], source=above)
        spread(stripe)
    stripe.sycl_queue.wait()
    whole = zeusm.empty((HEIGHT, WIDTH), "f4") if world.rank == 0 else None
    world.Gather(array[1:-1], whole)
    if world.rank == 0:
        found, alone = whole.copy_to_host(), hot_spots()
        for _ in range(STEPS):
            spread(alone)
        assert np.allclose(found, alone[1:-1], atol=1e-5)
        colours = png.coloured(found)
        colours[rows::rows] = 255  # The borders of the stripes.
        png.write(path, colours)
        print(f"{world.size} stripes on {array.sycl_device.name}: as one process computes")


if __name__ == "__main__":
    main(*sys.argv[1:])
