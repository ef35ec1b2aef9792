"""Uses the whole package on a driver whose n-th call fails. test_faults.py runs this program.

Arguments: the packages to use beside zeusm ("none" or "dpctl"), the index of the first call that fails, the stride between
indices, and the result codes as name=number. The program prints each finding, and the number of runs at the end.
"""

import ctypes
import faulthandler
import gc
import os
import pickle
import re
import sys

import numpy as np
import zeusm
import zeusm.memory as zm

# A run takes milliseconds; the limit detects a deadlock.
LIMIT_SECONDS = 60
KINDS = {"device": zm.MemoryUSMDevice, "shared": zm.MemoryUSMShared, "host": zm.MemoryUSMHost}
# A failure of these functions may pass without an exception: a pool that fails to allocate frees its cached memory and tries
# again, a drop cannot report errors, an event whose query fails is waited for, a copy is staged through the host if peer
# access cannot be queried, and the status of a device is an optional query.
MAY_PASS = {
    "zeMemAllocHost",
    "zeMemAllocDevice",
    "zeMemAllocShared",
    "zeMemFree",
    "zeMemFreeExt",  # Only SYCL calls it.
    "zeMemPutIpcHandle",
    "zeMemCloseIpcHandle",
    "zeCommandListDestroy",
    "zeEventDestroy",
    "zeEventPoolDestroy",
    "zeContextDestroy",
    "zeEventQueryStatus",
    "zeDeviceCanAccessPeer",
    "zeDeviceGetStatus",
}
# An older driver lacks this function, and zeusm waits for an event instead.
MAY_BE_MISSING = {
    ("zeCommandListHostSynchronize", "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE"),
    ("zeCommandListHostSynchronize", "ZE_RESULT_ERROR_UNINITIALIZED"),
}
# Without memory, the pools free theirs, and the call is repeated.
MAY_BE_REPEATED = {
    (function, f"ZE_RESULT_ERROR_OUT_OF_{memory}_MEMORY")
    for function in (
        "zeCommandListCreateImmediate",
        "zeDeviceGetCommandQueueGroupProperties",
        "zeEventPoolCreate",
        "zeEventCreate",
        "zeEventHostReset",
    )
    for memory in ("HOST", "DEVICE")
}
# A failed release leaks its object, so the counts of live objects may grow.
GIVES_BACK = {
    "zeMemFree",
    "zeMemFreeExt",
    "zeMemPutIpcHandle",
    "zeMemCloseIpcHandle",
    "zeCommandListDestroy",
    "zeContextDestroy",
}


class Driver:
    """The control functions of the fault driver, which is the runtime."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["ZEUSM_RUNTIME"])
        self.library.zeusm_fault_arm.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
        self.library.zeusm_fault_fired.restype = ctypes.c_char_p

    def arm(self, nth=0, code=0):
        self.library.zeusm_fault_arm(nth, code)

    def fired(self):
        name = self.library.zeusm_fault_fired()
        return name.decode() if name else None

    def live(self):
        """Counts of live objects by kind, without events, which queues keep for reuse."""
        text = ctypes.create_string_buffer(200)
        self.library.zeusm_fault_live(text, len(text))
        kinds = re.findall(r"(\d+) ([^,]+)", text.value.decode())
        return {kind: int(count) for count, kind in kinds if not kind.startswith("event")}


def pattern(size, seed):
    once = bytes((index * 31 + seed) % 251 for index in range(251))
    return (once * (size // 251 + 1))[:size]


def allocate():
    for make in KINDS.values():
        for size, alignment in (1, 0), (64, 4096), (5000, 0), (3 << 20, 0):
            memory = make(size, alignment=alignment)
            assert memory.nbytes == size
            memory.close()


def copy(size=1000):
    data, back = pattern(size, 1), bytearray(size)
    device, shared, host = (make(size) for make in KINDS.values())
    device.memset(3)
    assert device.tobytes() == b"\3" * size
    host.copy_from_host(data)
    device.copy_from_device(host)
    shared.copy_from_device(device)
    shared.copy_to_host(back)
    assert bytes(back) == data == bytes(device)


def copy_much():
    copy(1 << 20)


def work_asynchronously():
    size = 1 << 18
    data, back = pattern(size, 2), bytearray(size)
    device, shared, _ = (make(size) for make in KINDS.values())
    written = device.copy_from_host_async(data)
    filled = shared.memset_async(9)
    copied = shared.copy_from_device_async(device, depends=[written, filled])
    read = shared.copy_to_host_async(back, depends=[copied])
    assert read.wait()
    assert filled.is_complete
    assert bytes(back) == data
    assert filled.profiling_info_end >= filled.profiling_info_start


def let_go():
    for value in range(3):
        KINDS["device"](1 << 18).memset_async(value)
    memory = KINDS["shared"](100)
    memory.memset_async(5)
    assert memory.tobytes() == b"\5" * 100


def hint():
    memory = KINDS["shared"](1 << 16)
    memory.mem_advise("set_read_mostly").wait()
    memory.prefetch().wait()


def slice_and_pickle():
    memory = KINDS["shared"](1000)
    memory.copy_from_host(pattern(1000, 3))
    part = memory[100:300]
    assert part.tobytes() == pattern(1000, 3)[100:300]
    assert pickle.loads(pickle.dumps(part)).tobytes() == part.tobytes()
    assert bytes(memoryview(memory)[:10]) == pattern(10, 3)


def use_a_pool():
    for kind in KINDS:
        pool = zm.MemoryPool(kind)
        pool.set_failure_callback(lambda size: False)
        blocks = [pool.malloc(size) for size in (1, 100, 5000, 100_000, 3 << 20)]
        blocks[0].memset(1)
        assert pool.statistics().used_count == 5
        del blocks
        pool.trim(1 << 20)
        pool.free_all_blocks()
        assert pool.used_bytes() == 0


def share():
    memory = KINDS["shared"](4096)
    memory.memset(4)
    handle = zm.IPCMemoryHandle(memory[1024:2048])
    opened = zm.IPCMemoryHandle.open(handle.to_bytes())
    assert opened.tobytes() == b"\4" * 1024
    opened.close()
    handle.close()


def use_arrays():
    numbers = np.arange(600, dtype="i4").reshape(20, 30)
    for kind in KINDS:
        array = zeusm.asarray(numbers, usm_type=kind)
        turned = array.T[3:20:2]
        assert (turned.copy_to_host() == numbers.T[3:20:2]).all()
        array[::2].copy_from_host(numbers[::2] + 1)
        wanted = numbers.copy()
        wanted[::2] += 1
        assert (array.copy_to_host() == wanted).all()
        other = zeusm.asarray(array.T, copy=True)
        assert (other.copy_to_host() == wanted.T).all()


def exchange():
    numbers = np.arange(100, dtype="f8")
    for kind in "shared", "host":
        memory = zeusm.asarray(numbers, usm_type=kind)
        assert (zeusm.from_dlpack(memory).copy_to_host() == numbers).all()
        memory.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        assert (np.asarray(memory) == numbers).all()
        assert zeusm.from_dlpack(np.asarray(memory))._pointer == memory._pointer
    found = zeusm.pointer_attributes(memory._pointer)
    assert found.usm_type == "host"
    assert zm.as_usm_memory(memory.base)._pointer == memory.base._pointer


def exchange_with_dpctl():
    import dpctl
    import dpctl.memory

    for name, make in KINDS.items():
        memory = make(256)
        memory.copy_from_host(pattern(256, 5))
        theirs = dpctl.memory.as_usm_memory(memory)
        assert bytes(theirs.copy_to_host()) == pattern(256, 5), name
        ours = zm.as_usm_memory(theirs)
        assert ours._pointer == memory._pointer
        foreign = dpctl.memory.MemoryUSMShared(256)
        foreign.memset(7)
        memory.copy_from_device(foreign)
        assert memory.tobytes() == b"\7" * 256
        event = memory.memset_async(8)
        event.sycl_event.wait()
        assert memory.tobytes() == b"\10" * 256


def copy_between_contexts():
    import dpctl

    device = dpctl.SyclDevice("level_zero")
    queue = dpctl.SyclQueue(dpctl.SyclContext(device), device)
    source = KINDS["device"](1 << 16, queue=queue)
    source.memset(3)
    memory = KINDS["device"](1 << 16)
    memory.copy_from_device(source)
    assert memory.tobytes() == b"\3" * (1 << 16)
    memory.memset_async(4)
    source.copy_from_device_async(memory).wait()
    assert source.tobytes() == b"\4" * (1 << 16)


STEPS = [
    allocate, copy, copy_much, work_asynchronously, let_go, hint, slice_and_pickle, use_a_pool, share, use_arrays, exchange,
]  # fmt: skip
STEPS_WITH_DPCTL = [exchange_with_dpctl, copy_between_contexts]


def settle():
    """Releases garbage and the cached memory of pools."""
    gc.collect()
    for kind in KINDS:
        zm.get_pool(kind).free_all_blocks()


def judge(step, error, function, code):
    """The findings about the outcome of a step in which `function` failed."""
    where = f"{step.__name__}, {function} returning {code}"
    if error is None:
        told = function in MAY_PASS or (function, code) in MAY_BE_MISSING | MAY_BE_REPEATED
        return [] if told else [f"{where}: the failure was not reported"]
    if (
        step is exchange_with_dpctl
        and type(error) is sys.modules["dpctl.memory"].USMAllocationError
    ):
        # The error of dpctl's own allocation names neither function nor code.
        told = function == "zeMemAllocShared" and str(error) == "USM allocation failed"
        return [] if told else [f"{where}: {error}"]
    if not isinstance(error, zeusm.LevelZeroError | zm.USMAllocationError | zm.IPCError):
        return [f"{where}: {type(error).__name__}: {error}"]
    if function not in str(error) or code not in str(error):
        return [f"{where}: {error}, which reports another failure"]
    return []


def attempt(step):
    try:
        step()
    except BaseException as error:  # PanicException is not a subclass of Exception.
        return error
    return None


def play(driver, steps, nth, name, code):
    """Runs the steps and repeats a failed one; returns the findings and the failed call, or None if no call failed."""
    wrong, told = [], False
    driver.arm(nth, code)
    for step in steps:
        error, function = attempt(step), driver.fired()
        if function is not None and not told:
            told = True
            wrong += judge(step, error, function, name)
            error = attempt(step) if error is not None else None
        if error is not None:
            wrong.append(
                f"{step.__name__}, after {function} returned {name}: {type(error).__name__}: {error}"
            )
        # The traceback refers to the step's memory.
        del error
    gc.collect()
    fired = driver.fired()
    driver.arm()
    settle()
    return (wrong, fired) if fired else None


def main(packages, first, stride, *codes):
    driver = Driver()
    steps = STEPS
    if packages == "dpctl":
        import dpctl.memory  # noqa: F401 - zeusm uses SYCL's contexts after this import

        steps = STEPS + STEPS_WITH_DPCTL
    for step in steps:
        step()
    settle()
    before, runs = driver.live(), 0
    for turn, pair in enumerate(codes):
        name, code = pair.split("=")
        nth = int(first) + turn
        while True:
            faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
            played = play(driver, steps, nth, name, int(code))
            faulthandler.cancel_dump_traceback_later()
            if played is None:
                break
            wrong, function = played
            live = driver.live()
            if live != before and function not in GIVES_BACK:
                wrong.append(f"{function} returning {name}: live objects {live}, before {before}")
            before = live
            for what in wrong:
                print(f"call {nth}: {what}", flush=True)
            runs, nth = runs + 1, nth + int(stride)
    print(f"{runs} runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
