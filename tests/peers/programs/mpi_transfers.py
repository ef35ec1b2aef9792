"""Transfers between two ranks: mpi_transfers.py USM_TYPE. Each rank prints a line at the end."""

import sys

import numpy as np
import zeusm
import zeusm.memory as zm
from mpi4py import MPI

USM_TYPE = sys.argv[1]
WORLD = MPI.COMM_WORLD
RANK, OTHER = WORLD.rank, 1 - WORLD.rank
CLASS = {
    "shared": zm.MemoryUSMShared,
    "host": zm.MemoryUSMHost,
    "device": zm.MemoryUSMDevice,
}[USM_TYPE]
assert WORLD.size == 2


def mine(rank=RANK):
    """The numbers of a rank."""
    return np.arange(12, dtype="f8").reshape(3, 4) + 100 * rank


def array(rank=RANK):
    return zeusm.asarray(mine(rank), usm_type=USM_TYPE)


def read_only(x):
    interface = x.__sycl_usm_array_interface__
    return zeusm.from_sycl_usm_array_interface({**interface, "data": (x._pointer, True)}, owner=x)


def raises(expected, call, *arguments):
    try:
        call(*arguments)
    except expected as error:
        return str(error)
    raise AssertionError(f"{call} did not raise {expected}")


def two_sided():
    """Send and Recv of arrays and memory, blocking and not."""
    received = zeusm.empty((3, 4), "f8", usm_type=USM_TYPE)
    if RANK == 0:
        WORLD.Send(array(), OTHER)
        WORLD.Recv(received, OTHER)
    else:
        WORLD.Recv(received, OTHER)
        WORLD.Send(array(), OTHER)
    assert (received.copy_to_host() == mine(OTHER)).all()

    source, target = CLASS(1 << 20), CLASS(1 << 20)
    source.memset(RANK + 1)
    requests = [
        WORLD.Isend([source, MPI.BYTE], OTHER, tag=1),
        WORLD.Irecv([target, MPI.BYTE], OTHER, tag=1),
    ]
    MPI.Request.Waitall(requests)
    assert target.tobytes() == bytes([OTHER + 1]) * target.nbytes

    status = MPI.Status()
    WORLD.Sendrecv(array(), OTHER, recvbuf=[received, 12, MPI.DOUBLE], source=OTHER, status=status)
    assert status.Get_count(MPI.DOUBLE) == 12


def collective():
    total = zeusm.empty((3, 4), "f8", usm_type=USM_TYPE)
    WORLD.Allreduce(array(), total)
    assert (total.copy_to_host() == mine(0) + mine(1)).all()
    in_place = array()
    WORLD.Allreduce(MPI.IN_PLACE, in_place)
    assert (in_place.copy_to_host() == mine(0) + mine(1)).all()
    everything = zeusm.empty((2, 3, 4), "f8", usm_type=USM_TYPE)
    WORLD.Allgather(array(), everything)
    assert (everything.copy_to_host() == [mine(0), mine(1)]).all()


def one_sided():
    """Put and Get. The window keeps the memory: it cannot be closed before the window is freed."""
    exposed, local = CLASS(64), CLASS(64)
    exposed.memset(0)
    local.memset(RANK + 1)
    window = MPI.Win.Create(exposed, comm=WORLD)
    window.Fence()
    window.Put([local, 32, MPI.BYTE], OTHER)
    window.Fence()
    assert exposed.tobytes() == bytes([OTHER + 1]) * 32 + bytes(32)
    window.Fence()
    window.Get([local, 64, MPI.BYTE], OTHER)
    window.Fence()
    assert local.tobytes() == bytes([RANK + 1]) * 32 + bytes(32)
    if USM_TYPE != "device":
        raises(BufferError, exposed.close)
    window.Free()
    exposed.close()


def strided():
    """A strided array is refused, and goes by a derived type of its memory."""
    matrix = array()
    column = matrix[:, 1]
    assert "not contiguous" in raises(BufferError, WORLD.Send, column, OTHER)
    lines, step = column.shape[0], column.strides[0]
    column_type = MPI.DOUBLE.Create_vector(lines, 1, step).Commit()
    first = column.offset * column.itemsize
    WORLD.Sendrecv_replace([column.base[first:], 1, column_type], OTHER, source=OTHER)
    column_type.Free()
    expected = mine()
    expected[:, 1] = mine(OTHER)[:, 1]
    assert (matrix.copy_to_host() == expected).all()
    # The transpose has no gaps, so its bytes are sent in the order of the memory.
    received = zeusm.empty((3, 4), "f8", usm_type=USM_TYPE)
    WORLD.Sendrecv(array().T, OTHER, recvbuf=received, source=OTHER)
    assert (received.copy_to_host() == mine(OTHER)).all()


def records():
    """MPI has no type for records; their bytes are sent."""
    dtype = [("x", "i4"), ("y", "f8")]
    source = zeusm.asarray(np.array([(RANK, 2.5)] * 3, dtype), usm_type=USM_TYPE)
    target = zeusm.empty(3, dtype, usm_type=USM_TYPE)
    if USM_TYPE != "device":
        raises(KeyError, WORLD.Send, source, OTHER)
    send, receive = [source.base, MPI.BYTE], [target.base, MPI.BYTE]
    WORLD.Sendrecv(send, OTHER, recvbuf=receive, source=OTHER)
    assert target.copy_to_host().tolist() == [(OTHER, 2.5)] * 3


def reading():
    """Read-only memory is sent, and nothing is received into it."""
    target = array()
    text = raises(BufferError, WORLD.Recv, read_only(target), OTHER)
    assert "not writable" in text, text
    assert (target.copy_to_host() == mine()).all()
    received = zeusm.empty((3, 4), "f8", usm_type=USM_TYPE)
    WORLD.Sendrecv(read_only(array()), OTHER, recvbuf=received, source=OTHER)
    assert (received.copy_to_host() == mine(OTHER)).all()


def pickled():
    """The functions in lower case pickle."""
    received = WORLD.sendrecv(array(), OTHER, source=OTHER)
    assert received.usm_type == USM_TYPE
    assert (received.copy_to_host() == mine(OTHER)).all()


def staged():
    """Device memory by host memory, for a library that cannot access devices."""
    staging = zm.MemoryUSMHost(array().base, copy=True)
    WORLD.Sendrecv_replace([staging, MPI.BYTE], OTHER, source=OTHER)
    received = zeusm.empty((3, 4), "f8", usm_type=USM_TYPE)
    received.base.copy_from_device(staging)
    assert (received.copy_to_host() == mine(OTHER)).all()


for step in (two_sided, collective, one_sided, strided, records, reading, pickled, staged):
    step()
    WORLD.Barrier()
print(f"{RANK}:complete", flush=True)
