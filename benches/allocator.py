"""The time of an allocation and a free by C code at four threads: the functions of `zeusm.torch.use`, without a queue and with an idle
one, and those of the C API, beside dpctl's functions, UMF's disjoint pool, from which SYCL allocates, and malloc.

The time is that of a processor for one call: a thread that waits for another counts.
"""

import ctypes
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from functools import partial

import zeusm._zeusm
import zeusm.memory
from compare import ROUNDS, report
from zeusm._bench.alternate import medians

# isort: split
import dpctl

THREADS, CALLS = 4, 20000
SOURCE = r"""
#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* Allocates 64 blocks of 512 B to 4 KiB, frees them, and so on. */
#define LIVE 64
typedef void *(*function)();
struct work { int style, calls; function allocate, release; void *first; };

static void *allocated(struct work *it, size_t size)
{
    switch (it->style) {
    case 0: return ((void *(*)(size_t))it->allocate)(size);
    case 1: return ((void *(*)(size_t, int, void *))it->allocate)(size, 0, it->first);
    case 2: return ((void *(*)(size_t, void *))it->allocate)(size, it->first);
    case 3: return ((void *(*)(void *, size_t, size_t))it->allocate)(it->first, size, 0);
    default: return ((void *(*)(void *, size_t))it->allocate)(it->first, size);
    }
}

static void freed(struct work *it, void *pointer, size_t size)
{
    switch (it->style) {
    case 0: case 3: ((void (*)(void *))it->release)(pointer); break;
    case 1: ((void (*)(void *, size_t, int, void *))it->release)(pointer, size, 0, it->first); break;
    case 2: ((void (*)(void *, void *))it->release)(pointer, it->first); break;
    default: ((int (*)(void *, void *))it->release)(it->first, pointer);
    }
}

static void *work(void *argument)
{
    struct work *it = argument;
    void *live[LIVE];
    for (int done = 0; done < it->calls; done += 2 * LIVE) {
        for (int i = 0; i < LIVE; ++i)
            live[i] = allocated(it, (size_t)512 << i % 4);
        for (int i = 0; i < LIVE; ++i)
            freed(it, live[i], (size_t)512 << i % 4);
    }
    return NULL;
}

double seconds(int threads, int calls, int style, function allocate, function release, void *first)
{
    struct work it = {style, calls, allocate, release, first};
    pthread_t running[64];
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < threads; ++i)
        pthread_create(&running[i], NULL, work, &it);
    for (int i = 0; i < threads; ++i)
        pthread_join(running[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) * 1e-9;
}
"""


def compiled():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "allocator.c")
        source.write_text(SOURCE)
        library = source.with_suffix(".so")
        compiler = shlex.split(os.environ.get("CC", "cc"))
        subprocess.run(
            [*compiler, "-O2", "-w", "-shared", "-fPIC", source, "-o", library], check=True
        )
        seconds = ctypes.CDLL(str(library)).seconds
    seconds.restype = ctypes.c_double
    return seconds


def address(library, name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p)


def c_api(pool):
    """The C API's `allocate` and `free`, and its pool."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    table = get(zeusm._zeusm._C_API, b"zeusm._C_API")
    # Behind two numbers in the place of one pointer: check, describe, from_pointer, pool, allocate, free.
    of_pool, *functions = (ctypes.c_void_p * 7).from_address(table)[4:]
    pool = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(of_pool)(pool)
    return *map(ctypes.c_void_p, functions), ctypes.c_void_p(pool)


def umf_pool(umf):
    """UMF's disjoint pool over host memory of the system."""
    handles = [ctypes.c_void_p() for _ in range(4)]
    source, provider, parameters, pool = map(ctypes.byref, handles)
    for name in "umfOsMemoryProviderOps", "umfDisjointPoolOps":
        getattr(umf, name).restype = ctypes.c_void_p
    operations = [
        ctypes.c_void_p(umf.umfOsMemoryProviderOps()),
        ctypes.c_void_p(umf.umfDisjointPoolOps()),
    ]
    assert umf.umfOsMemoryProviderParamsCreate(source) == 0
    assert umf.umfMemoryProviderCreate(operations[0], handles[0], provider) == 0
    assert umf.umfDisjointPoolParamsCreate(parameters) == 0
    for setting, value in ("SlabMinSize", 64 << 10), ("MaxPoolableSize", 4 << 20), ("Capacity", 4):
        set_it = getattr(umf, f"umfDisjointPoolParamsSet{setting}")
        assert set_it(handles[2], ctypes.c_size_t(value)) == 0
    assert umf.umfPoolCreate(operations[1], handles[1], handles[2], 0, pool) == 0
    return handles[3]


def main():
    pool = zeusm.memory.MemoryPool("device")
    zeusm._zeusm._torch_pools([pool])
    queue = dpctl.SyclQueue("level_zero:gpu", property="in_order")
    ours = ctypes.CDLL(zeusm._zeusm.__file__)
    theirs = ctypes.CDLL(str(pathlib.Path(dpctl.__file__).parent / "libDPCTLSyclInterface.so"))
    system = ctypes.CDLL(None)
    umf = ctypes.CDLL(os.environ.get("ZEUSM_UMF_LIBRARY", f"{sys.prefix}/lib/libumf.so.1"))
    reference = ctypes.c_void_p(queue.addressof_ref())
    own = address(ours, "zeusm_torch_allocate"), address(ours, "zeusm_torch_free")
    of_dpctl = address(theirs, "DPCTLmalloc_device"), address(theirs, "DPCTLfree_with_queue")
    of_umf = address(umf, "umfPoolMalloc"), address(umf, "umfPoolFree")
    styles = {
        "without a queue": (1, *own, None),
        "with an idle queue": (1, *own, reference),
        "by the C API": (3, *c_api(pool)),
        "dpctl": (2, *of_dpctl, reference),
        "UMF": (4, *of_umf, umf_pool(umf)),
        "malloc": (0, address(system, "malloc"), address(system, "free"), None),
    }
    seconds = compiled()
    functions = {
        name: partial(seconds, THREADS, CALLS, *arguments) for name, arguments in styles.items()
    }
    calls = THREADS * CALLS / min(THREADS, os.cpu_count())
    times = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            times[name].append(function() / calls)
    values = medians(times)
    peers = {name: values.pop(name) for name in ("dpctl", "UMF", "malloc")}
    for name, own in values.items():
        report("allocate or free by C code", name, "s", {"zeusm": own} | peers)


if __name__ == "__main__":
    main()
