"""oneCCL on USM memory, each result compared with NumPy's: `collectives.py KIND [LIBRARY]`, in ranks of MPI.

It is the C API, or with a library, which was made of collectives.cpp, the C++ API. Groups, send and receive are those of the latter
only (docs/limits.md).

Each rank prints how many results it compared.
"""

import ctypes
import sys
from pathlib import Path

import dpctl
import numpy as np
import zeusm
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
KIND = sys.argv[1]
CPP = sys.argv[2:]
LIBRARY = ctypes.CDLL(CPP[0] if CPP else str(Path(sys.prefix) / "lib" / "libccl.so.2"))
PREFIX = "cpp" if CPP else "oneccl"
#: `ccl::datatype`, or `onecclDataType_t`.
TYPES = {"i4": 4, "i8": 6, "f4": 9, "f8": 10} if CPP else {"i4": 2, "i8": 4, "f4": 7, "f8": 8}
SUM = 0
SIZES = [4, 900, 5000, 300_000]
QUEUE = dpctl.SyclQueue("level_zero:gpu", property="in_order")

compared = 0


class UniqueId(ctypes.Structure):
    """`onecclUniqueId`."""

    _fields_ = [("data", ctypes.c_char * 4096)]


def convert(argument):
    """An argument in C: an array by its address, a number by its type in Python."""
    match argument:
        case zeusm.UsmArray():
            return ctypes.c_void_p(argument._pointer)
        case np.integer():
            return ctypes.c_size_t(int(argument))
        case _:
            return argument


def call(name, *arguments):
    result = getattr(LIBRARY, PREFIX + name)(*map(convert, arguments))
    if result:
        print(f"rank {RANK}: {PREFIX}{name} answers {result}", flush=True)
        WORLD.Abort(1)


def communicator():
    if not CPP:
        call("SetDevice", ctypes.c_uint32(0))
    identity = UniqueId()
    if RANK == 0:
        call("GetUniqueId", ctypes.byref(identity))
    shared = WORLD.bcast(bytes(bytearray(identity)))
    ctypes.memmove(ctypes.byref(identity), shared, len(shared))
    made = ctypes.c_void_p()
    if CPP:
        queue = ctypes.c_void_p(QUEUE.addressof_ref())
        call("CommInitRank", ctypes.byref(identity), RANKS, RANK, queue)
    else:
        call("CommInitRank", ctypes.byref(made), np.intp(RANKS), identity, RANK)
    return made


def values(rank, size, dtype):
    """What `rank` has. Sums of these are exact in each type."""
    return (np.arange(size) % 251 + 3 * rank).astype(dtype)


def place(data):
    return zeusm.asarray(data, usm_type=KIND, queue=QUEUE)


def check(array, expected, *what):
    global compared
    QUEUE.wait()
    if not np.array_equal(array.copy_to_host(), expected):
        print(f"rank {RANK}: {what} is wrong", flush=True)
        WORLD.Abort(1)
    compared += 1


def collectives(comm, size, dtype):
    what, count = (size, dtype), np.intp(size)
    end = comm, ctypes.c_void_p(QUEUE.addressof_ref())
    each = [values(rank, size, dtype) for rank in range(RANKS)]
    mine, root = place(each[RANK]), RANKS - 1

    total = place(np.zeros(size, dtype))
    call("AllReduce", mine, total, count, TYPES[dtype], SUM, *end)
    check(total, sum(each), "allreduce", *what)

    reduced = place(np.zeros(size, dtype))
    call("Reduce", mine, reduced, count, TYPES[dtype], SUM, root, *end)
    check(reduced, sum(each) if root == RANK else np.zeros(size, dtype), "reduce", *what)

    same = place(np.zeros(size, dtype))
    call("Broadcast", mine, same, count, TYPES[dtype], root, *end)
    check(same, each[root], "broadcast", *what)

    gathered = place(np.zeros(RANKS * size, dtype))
    call("AllGather", mine, gathered, count, TYPES[dtype], *end)
    check(gathered, np.concatenate(each), "allgather", *what)

    many = place(np.concatenate([each[RANK] + 7 * rank for rank in range(RANKS)]).astype(dtype))
    exchanged = place(np.zeros(RANKS * size, dtype))
    call("AllToAll", many, exchanged, count, TYPES[dtype], *end)
    expected = np.concatenate([it + 7 * RANK for it in each]).astype(dtype)
    check(exchanged, expected, "alltoall", *what)

    scattered = place(np.zeros(size, dtype))
    call("ReduceScatter", many, scattered, count, TYPES[dtype], SUM, *end)
    check(scattered, sum(it + 7 * RANK for it in each), "reduce_scatter", *what)


def groups(comm, size, dtype):
    what, count = (size, dtype), np.intp(size)
    end = comm, ctypes.c_void_p(QUEUE.addressof_ref())
    each = [values(rank, size, dtype) for rank in range(RANKS)]
    mine, right, left = place(each[RANK]), (RANK + 1) % RANKS, (RANK - 1) % RANKS

    theirs = place(np.zeros(size, dtype))
    call("GroupStart")
    call("Send", mine, count, TYPES[dtype], right, *end)
    call("Recv", theirs, count, TYPES[dtype], left, *end)
    call("GroupEnd")
    check(theirs, each[left], "send and receive", *what)

    total, gathered = place(np.zeros(size, dtype)), place(np.zeros(RANKS * size, dtype))
    call("GroupStart")
    call("AllReduce", mine, total, count, TYPES[dtype], SUM, *end)
    call("AllGather", mine, gathered, count, TYPES[dtype], *end)
    call("GroupEnd")
    check(total, sum(each), "allreduce in a group", *what)
    check(gathered, np.concatenate(each), "allgather in a group", *what)


comm = communicator()
for dtype in TYPES:
    for size in SIZES:
        collectives(comm, size, dtype)
        if CPP:
            groups(comm, size, dtype)
call("CommDestroy", comm)
print(f"{RANK}: {compared} compared", flush=True)
