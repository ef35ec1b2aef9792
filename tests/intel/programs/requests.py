"""Runs steps on the simulated GPU while requests of one name fail: requests.py REQUEST FIRST [once], with the number of
the first case; `once` leaves out the cases in which all requests fail.

Each case is printed before it starts, so that a case which terminates the process can be identified.
"""

import ctypes
import gc
import sys

import zeusm
import zeusm.memory as zm

SIZE = 1 << 20
# Errors after which Intel's driver repeats the request.
RETRIED = ["EINTR", "EAGAIN", "EBUSY"]
# The first two are those of exhausted memory and of a removed device. Each request fails with them; with the others only
# the first one.
ERRORS = ["ENOMEM", "ENODEV", "ENOSPC", "EINVAL", "EIO", "ECANCELED"]
# The maximum number of requests of one name that fail individually, one per case. A further case fails all of them.
MOST = 4
# On a real kernel, waits for fences only fail permanently after a ban of the queue, which XE_SIM_STOP simulates. Failing
# the waits without a ban makes the driver hang or abort.
NEVER_FOR_GOOD = {"DRM_IOCTL_XE_WAIT_USER_FENCE"}

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


def chain():
    first, second = zm.MemoryUSMDevice(SIZE, pool=False), zm.MemoryUSMHost(SIZE, pool=False)
    filled = first.memset_async(5)
    second.copy_from_device_async(first, depends=[filled]).wait()
    assert bytes(memoryview(second)) == bytes([5]) * SIZE


def migrate():
    shared = zm.MemoryUSMShared(SIZE, pool=False)
    memoryview(shared)[:4] = b"host"
    shared.memset_async(3).wait()
    assert bytes(memoryview(shared)[:4]) == b"\3\3\3\3"


def share():
    memory = zm.MemoryUSMDevice(SIZE, pool=False)
    memory.memset(4)
    handle = memory.ipc_handle()
    if len(zeusm.runtime().device_names) > 1:
        return  # Memory of this process is not opened then.
    with zm.IPCMemoryHandle.open(handle) as opened:
        assert bytes(opened.copy_to_host()) == bytes([4]) * SIZE


STEPS = {
    "device": lambda: direct("MemoryUSMDevice"),
    "host": lambda: direct("MemoryUSMHost"),
    "shared": lambda: direct("MemoryUSMShared"),
    "there and back": there_and_back,
    "chain": chain,
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


def cases(request, once):
    """The texts for `xe_sim_fail`."""
    assert fail(f"{request}:EIO:1000000000:1".encode()) >= 0
    assert not run()
    made = fail(None)
    assert made, "the steps make no such request"
    # Mappings are no requests, which the driver could repeat.
    if request != "mmap":
        yield from (f"{request}:{error}:1:2" for error in RETRIED)
    for number in range(1, min(made, MOST) + 1):
        yield from (
            f"{request}:{error}:{number}:1" for error in ERRORS[: 2 if number > 1 else None]
        )
    if not once and request not in NEVER_FOR_GOOD:
        yield from (f"{request}:{error}" for error in ERRORS)


def main(request, first, *once):
    assert not run()  # Creates the objects that are only created once per process.
    for index, case in enumerate(cases(request, once)):
        if index < int(first):
            continue
        print(f"case {index} {case}", flush=True)
        fail(case.encode())
        errors = run()
        fail(None)
        if case.split(":")[1] in RETRIED:
            print(*(f"WRONG: {step} is not repeated: {errors[step]}" for step in errors), sep="\n")
        after = run()
        # A ban of the queue is permanent, so the next case needs a new process.
        if any("DEVICE_LOST" in str(error) for error in [*errors.values(), *after.values()]):
            sys.exit(3)
        print(*(f"WRONG: {step}, afterwards: {after[step]}" for step in after), sep="\n")
    print("done")


main(*sys.argv[1:])
