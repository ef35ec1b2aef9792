"""What two or more ranks send each other out of USM memory, each result compared with NumPy's: `transfers.py KIND`.

Each rank prints how many results it compared.
"""

import sys

import dpctl
import dpnp
import numpy as np
import zeusm
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
RIGHT, LEFT = (RANK + 1) % RANKS, (RANK - 1) % RANKS
KIND = sys.argv[1]
TYPES = ["i4", "i8", "f4", "f8"]
# Elements: messages of some bytes, of the sizes at which MPI changes its ways, and of megabytes.
SIZES = [1, 3, 33, 900, 2500, 6000, 70_000, 300_000]
LARGEST = 64 << 20
OFFSETS = [0, 1, 7]

compared = 0


def values(rank, size, dtype):
    """What `rank` has. Sums of these are exact in each type."""
    return (np.arange(size) % 251 + 3 * rank).astype(dtype)


def place(data, offset):
    """An array of device memory with `data` behind `offset` other elements, and with more of these behind it."""
    around = np.full(len(data) + 16, 77, data.dtype)
    around[offset : offset + len(data)] = data
    return zeusm.asarray(around, usm_type=KIND)[offset : offset + len(data)]


def fail(text):
    """End all ranks: the others wait for this one."""
    print(text, flush=True)
    WORLD.Abort(1)


def check(array, expected, *what):
    global compared
    found = dpnp.asnumpy(array) if isinstance(array, dpnp.ndarray) else array.copy_to_host()
    if not np.array_equal(found, expected):
        (wrong,) = np.nonzero(found.ravel() != expected.ravel())
        fail(f"rank {RANK}: {what}: {len(wrong)} of {found.size} wrong, from {wrong[:5]}")
    compared += 1


def check_surroundings(array, offset, *what):
    """The bytes before and behind a buffer are as they were."""
    flat = array.base.copy_to_host().view(array.dtype)
    check_bytes = np.concatenate([flat[:offset], flat[offset + array.size :]])
    if (check_bytes != 77).any():
        fail(f"rank {RANK}: {what}: bytes beside the buffer were written")


def messages(size, dtype, offset):
    what = (size, dtype, offset)
    mine = place(values(RANK, size, dtype), offset)
    theirs = place(np.zeros(size, dtype), offset)
    WORLD.Sendrecv(mine, RIGHT, recvbuf=theirs, source=LEFT)
    check(theirs, values(LEFT, size, dtype), "sendrecv", *what)
    check_surroundings(theirs, offset, "sendrecv", *what)

    total = place(np.zeros(size, dtype), offset)
    WORLD.Allreduce(mine, total)
    check(total, sum(values(rank, size, dtype) for rank in range(RANKS)), "allreduce", *what)

    root = RANKS - 1
    same = place(values(RANK, size, dtype), offset)
    WORLD.Bcast(same, root=root)
    check(same, values(root, size, dtype), "bcast", *what)

    each = [values(rank, size, dtype) for rank in range(RANKS)]
    gathered = place(np.zeros(RANKS * size, dtype), offset)
    WORLD.Allgather(mine, gathered)
    check(gathered, np.concatenate(each), "allgather", *what)

    collected = place(np.zeros(RANKS * size, dtype), offset)
    WORLD.Gather(mine, collected, root)
    check(collected, np.concatenate(each) * (root == RANK), "gather", *what)

    WORLD.Barrier()  # Intel MPI has a race between these two (docs/limits.md).
    parts = place(
        np.concatenate([values(RANK + rank, size, dtype) for rank in range(RANKS)]), offset
    )
    exchanged = place(np.zeros(RANKS * size, dtype), offset)
    WORLD.Alltoall(parts, exchanged)
    from_each = [values(rank + RANK, size, dtype) for rank in range(RANKS)]
    check(exchanged, np.concatenate(from_each), "alltoall", *what)


def one_sided(size, dtype):
    mine = place(values(RANK, size, dtype), 0)
    exposed = zeusm.asarray(np.zeros(size, dtype), usm_type=KIND)
    window = MPI.Win.Create(exposed.base, disp_unit=exposed.itemsize, comm=WORLD)
    window.Fence()
    window.Put(mine, RIGHT)
    window.Fence()
    check(exposed, values(LEFT, size, dtype), "put", size, dtype)
    window.Fence()
    window.Accumulate(mine, RIGHT, op=MPI.SUM)
    window.Fence()
    check(exposed, 2 * values(LEFT, size, dtype), "accumulate", size, dtype)
    window.Fence()
    got = place(np.zeros(size, dtype), 0)
    window.Get(got, RIGHT)
    window.Fence()
    check(got, 2 * values(RANK, size, dtype), "get", size, dtype)
    window.Free()


def strided(rows, columns):
    """A column, by a derived type of the array's memory."""
    table = values(RANK, rows * columns, "f8").reshape(rows, columns)
    array = zeusm.asarray(table, usm_type=KIND)
    column = array[:, 1]
    lines = MPI.DOUBLE.Create_vector(rows, 1, column.strides[0]).Commit()
    part = [column.base[column.offset * column.itemsize :], 1, lines]
    try:
        WORLD.Sendrecv_replace(part, RIGHT, source=LEFT)
    except MPI.Exception as error:
        # Intel MPI has no derived types in device memory, and says so before it sends.
        if KIND != "device" or error.Get_error_class() != MPI.ERR_TYPE:
            raise
        print(f"{RANK}: derived types refused", flush=True)
    else:
        table[:, 1] = values(LEFT, rows * columns, "f8").reshape(rows, columns)[:, 1]
        check(array, table, "column", rows, columns)
    lines.Free()


def arrays_of_dpnp(size, dtype):
    """An array of dpnp is sent in place as an array of zeusm that shares its memory."""
    queue = dpctl.SyclQueue()
    mine = dpnp.asarray(values(RANK, size, dtype), usm_type=KIND, sycl_queue=queue)
    theirs = dpnp.zeros(size, dtype=dtype, usm_type=KIND, sycl_queue=queue)
    queue.wait()
    WORLD.Sendrecv(
        zeusm.asarray(mine, copy=False),
        RIGHT,
        recvbuf=zeusm.asarray(theirs, copy=False),
        source=LEFT,
    )
    check(theirs, values(LEFT, size, dtype), "dpnp's sendrecv", size, dtype)


for dtype in TYPES:
    for size in SIZES:
        for offset in OFFSETS:
            messages(size, dtype, offset)
    for size in (1, 900, 70_000):
        one_sided(size, dtype)
        arrays_of_dpnp(size, dtype)
messages(LARGEST // 8, "f8", 1)
strided(300, 5)
print(f"{RANK}: {compared} compared", flush=True)
