"""Runs steps on the simulated GPU while requests of one name fail: requests.py REQUEST FIRST, with the number of the first
case.

Each case is printed before it starts, so that a case which terminates the process can be identified.
"""

import ctypes
import gc
import itertools
import sys

import zeusm
import zeusm.memory as zm

SIZE = 1 << 20
# The errors that the kernel can return, by request.
ERRORS = {
    "DRM_IOCTL_XE_GEM_CREATE": ["ENOMEM", "ENOSPC"],
    "DRM_IOCTL_XE_GEM_MMAP_OFFSET": ["ENOMEM"],
    "mmap": ["ENOMEM"],
    "DRM_IOCTL_XE_VM_BIND": ["ENOMEM", "ENOSPC", "ECANCELED"],
    "DRM_IOCTL_XE_EXEC": ["ENOMEM", "ECANCELED", "ENODEV"],
    "DRM_IOCTL_XE_EXEC_QUEUE_CREATE": ["ENOMEM"],
    "DRM_IOCTL_XE_WAIT_USER_FENCE": ["EIO"],
    "DRM_IOCTL_PRIME_HANDLE_TO_FD": ["ENOMEM"],
    "DRM_IOCTL_PRIME_FD_TO_HANDLE": ["ENOMEM", "EINVAL"],
    "DRM_IOCTL_GEM_CLOSE": ["EINVAL"],
}
# The maximum number of requests of one name that fail individually, one per case. A further case fails all of them.
MOST = 4

fail = ctypes.CDLL(None).xe_sim_fail
fail.argtypes = [ctypes.c_char_p]


def direct(kind):
    memory = getattr(zm, kind)(SIZE, pool=False)
    memory.memset(1)
    assert bytes(memory.copy_to_host()) == bytes([1]) * SIZE


def there_and_back():
    source, device = zm.MemoryUSMHost(SIZE, pool=False), zm.MemoryUSMDevice(SIZE, pool=False)
    memoryview(source)[:] = bytes([2]) * SIZE
    device.copy_from_device_async(source).wait()
    assert bytes(device.copy_to_host()) == bytes([2]) * SIZE


def migrate():
    shared = zm.MemoryUSMShared(SIZE, pool=False)
    memoryview(shared)[:4] = b"host"
    shared.memset_async(3).wait()
    assert bytes(memoryview(shared)[:4]) == b"\3\3\3\3"


def share():
    memory = zm.MemoryUSMDevice(SIZE, pool=False)
    memory.memset(4)
    with zm.IPCMemoryHandle.open(memory.ipc_handle()) as opened:
        assert bytes(opened.copy_to_host()) == bytes([4]) * SIZE


STEPS = {
    "device": lambda: direct("MemoryUSMDevice"),
    "host": lambda: direct("MemoryUSMHost"),
    "shared": lambda: direct("MemoryUSMShared"),
    "there and back": there_and_back,
    "migrate": migrate,
    "share": share,
}


def run():
    """Runs the steps and returns the errors of those that failed, which are also printed immediately."""
    errors = {}
    for name, step in STEPS.items():
        try:
            step()
        except Exception as error:
            errors[name] = error
            known = isinstance(error, zeusm.LevelZeroError | zm.USMAllocationError | zm.IPCError)
            verdict = "reported" if known else "WRONG"
            print(f"{verdict}: {name}: {type(error).__name__}: {error}", flush=True)
        gc.collect()
    return errors


def cases(request):
    errors = ERRORS[request]
    assert fail(f"{request}:EIO:1000000000:1".encode()) >= 0
    assert not run()
    made = fail(None)
    for number, error in itertools.product(range(1, min(made, MOST) + 1), errors):
        yield f"{request}:{error}:{number}:1"
    # On a real kernel, waits for fences only fail permanently after a ban of the queue, which XE_SIM_STOP simulates. Failing
    # the waits without a ban makes the driver hang or abort.
    if made and request != "DRM_IOCTL_XE_WAIT_USER_FENCE":
        yield from (f"{request}:{error}" for error in errors)


request, first = sys.argv[1:]
assert not run()  # Creates the objects that are only created once per process.
for index, case in enumerate(cases(request)):
    if index < int(first):
        continue
    print(f"case {index} {case}", flush=True)
    fail(case.encode())
    errors = run()
    fail(None)
    errors |= {f"{step}, afterwards": error for step, error in run().items()}
    # A ban of the queue is permanent, so the next case needs a new process.
    if any("DEVICE_LOST" in str(error) for error in errors.values()):
        sys.exit(3)
    after = [step for step in errors if "afterwards" in step]
    print(*(f"WRONG: {step}: {errors[step]}" for step in after), sep="\n")
print("done")
