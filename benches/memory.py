"""What zeusm.memory costs, beside dpctl.memory and the C library, on the same device in the same run."""

import ctypes
import gc
import os
import subprocess
import sys

import zeusm.memory
from compare import compare

# isort: split
import dpctl
import dpctl.memory

KINDS = ("Device", "Shared", "Host")
LIBC = ctypes.CDLL(None)
LIBC.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
LIBC.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def size_name(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} B"


def classes(kind):
    """zeusm's class and dpctl's."""
    name = f"MemoryUSM{kind}"
    return getattr(zeusm.memory, name), getattr(dpctl.memory, name)


def allocation():
    for kind in KINDS:
        ours, theirs = classes(kind)
        for size in (64, 1 << 20):
            functions = {"zeusm": lambda: ours(size), "dpctl": lambda: theirs(size)}  # noqa: B023
            compare(f"allocate and free {kind} {size_name(size)}", functions)


def objects():
    ours, theirs = (make(4096) for make in classes("Shared"))
    compare(
        "__sycl_usm_array_interface__",
        {
            "zeusm": lambda: ours.__sycl_usm_array_interface__,
            "dpctl": lambda: theirs.__sycl_usm_array_interface__,
        },
    )
    compare("memoryview", {"zeusm": lambda: memoryview(ours), "dpctl": lambda: memoryview(theirs)})
    compare(
        "as_usm_memory of the other's object",
        {
            "zeusm": lambda: zeusm.memory.as_usm_memory(theirs),
            "dpctl": lambda: dpctl.memory.as_usm_memory(ours),
        },
    )


def copies():
    """Between host and device memory, and fills, against dpctl's and the C library's."""
    for size in (64, 1 << 20, 64 << 20, 256 << 20):
        host = bytearray(size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(host))
        ours, theirs = (make(size) for make in classes("Device"))
        plain = bytearray(size)
        other = ctypes.addressof(ctypes.c_char.from_buffer(plain))
        peers = {
            f"copy_from_host {size_name(size)}": {
                "zeusm": lambda: ours.copy_from_host(host),  # noqa: B023
                "dpctl": lambda: theirs.copy_from_host(host),  # noqa: B023
                "memcpy": lambda: LIBC.memcpy(other, address, size),  # noqa: B023
            },
            f"copy_to_host {size_name(size)}": {
                "zeusm": lambda: ours.copy_to_host(host),  # noqa: B023
                "dpctl": lambda: theirs.copy_to_host(host),  # noqa: B023
                "memcpy": lambda: LIBC.memcpy(address, other, size),  # noqa: B023
            },
            f"memset {size_name(size)}": {
                "zeusm": lambda: ours.memset(1),  # noqa: B023
                "dpctl": lambda: theirs.memset(1),  # noqa: B023
                "memset": lambda: LIBC.memset(other, 1, size),  # noqa: B023
            },
        }
        for name, functions in peers.items():
            compare(name, functions, rounds=9)


def resident(make, count=100_000):
    """Bytes of this process for each live allocation of 64 bytes."""

    def now():
        gc.collect()
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    first = make(64)  # With all that is made once.
    before = now()
    live = [make(64) for _ in range(count)]
    print(f"{(now() - before) / count:.0f}")
    del first, live


def main():
    if sys.argv[1:]:
        return resident(classes("Shared")[sys.argv[1] == "dpctl"])
    device = dpctl.SyclDevice("level_zero:gpu")
    print(f"{device.name}, dpctl {dpctl.__version__}, medians")
    allocation()
    objects()
    copies()
    for peer in ("zeusm", "dpctl"):
        print(f"resident bytes for each live object of 64 B, {peer}: ", end="", flush=True)
        subprocess.run([sys.executable, __file__, peer], check=True)
    return None


if __name__ == "__main__":
    main()
