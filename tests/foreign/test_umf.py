"""UMF's Level Zero provider, and its pools over it, on the CPU runtime. tests/peers has UMF over pools of zeusm."""

import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import zeusm

UMF = ctypes.CDLL(str(Path(sys.prefix) / "lib" / "libumf.so.1"))
ZE = ctypes.CDLL(str(zeusm.runtime().path))
#: Numbers of umf_usm_memory_type_t.
KINDS = {"host": 1, "device": 2, "shared": 3}
#: UMF_POOL_CREATE_FLAG_OWN_PROVIDER: the pool destroys its provider.
OWNS_PROVIDER = 1
POINTERS = ["umfLevelZeroMemoryProviderOps", "umfProxyPoolOps", "umfDisjointPoolOps"]
POINTERS += ["umfPoolMalloc", "umfPoolCalloc", "umfPoolRealloc", "umfPoolAlignedMalloc"]
for function in POINTERS:
    getattr(UMF, function).restype = ctypes.c_void_p


def size_of(number):
    return ctypes.c_size_t(number)


def made(function, *arguments):
    """The handle that a function of UMF or Level Zero returns by its last argument."""
    handle = ctypes.c_void_p()
    assert function(*arguments, ctypes.byref(handle)) == 0
    return handle


def level_zero():
    """A context and the device of the CPU runtime."""
    assert ZE.zeInit(0) == 0
    one, driver, device = ctypes.c_uint32(1), ctypes.c_void_p(), ctypes.c_void_p()
    assert ZE.zeDriverGet(ctypes.byref(one), ctypes.byref(driver)) == 0
    assert ZE.zeDeviceGet(driver, ctypes.byref(one), ctypes.byref(device)) == 0
    description = (ctypes.c_uint64 * 3)(0x0D)  # ZE_STRUCTURE_TYPE_CONTEXT_DESC, no chain, no flags
    return made(ZE.zeContextCreate, driver, description), device


def pool_of(context, device, kind, usm_type):
    """A pool of UMF over its Level Zero provider."""
    parameters = made(UMF.umfLevelZeroMemoryProviderParamsCreate)
    named = {"Context": context, "MemoryType": KINDS[usm_type]}
    if usm_type != "host":
        named["Device"] = device
    for name, value in named.items():
        assert getattr(UMF, f"umfLevelZeroMemoryProviderParamsSet{name}")(parameters, value) == 0
    operations = ctypes.c_void_p(UMF.umfLevelZeroMemoryProviderOps())
    provider = made(UMF.umfMemoryProviderCreate, operations, parameters)
    assert UMF.umfLevelZeroMemoryProviderParamsDestroy(parameters) == 0
    options = made(UMF.umfDisjointPoolParamsCreate) if kind == "Disjoint" else None
    operations = ctypes.c_void_p(getattr(UMF, f"umf{kind}PoolOps")())
    pool = made(UMF.umfPoolCreate, operations, provider, options, OWNS_PROVIDER)
    if options:
        assert UMF.umfDisjointPoolParamsDestroy(options) == 0
    return pool


@pytest.fixture(scope="module")
def handles():
    return level_zero()


@pytest.fixture
def pool(handles):
    """Makes pools, and ends them without an error."""
    pools = []

    def make(kind, usm_type):
        pools.append(pool_of(*handles, kind, usm_type))
        return pools[-1]

    yield make
    for one in pools:
        assert UMF.umfPoolDestroy(one) == 0


def numbers(address, length, dtype="u4"):
    """The memory at an address, which the CPU runtime's host can always read, as NumPy's array."""
    count = length * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * count).from_address(address), dtype)


@pytest.mark.parametrize("usm_type", KINDS)
@pytest.mark.parametrize("kind", ["Proxy", "Disjoint"])
def test_blocks_of_all_sizes_are_the_drivers_and_do_not_overlap(pool, kind, usm_type):
    blocks = pool(kind, usm_type)
    random = np.random.default_rng(1)
    live = {}
    for _step in range(400):
        if live and random.random() < 0.45:
            address = list(live)[random.integers(len(live))]
            wanted = live.pop(address)
            assert np.array_equal(numbers(address, len(wanted)), wanted)
            assert UMF.umfPoolFree(blocks, ctypes.c_void_p(address)) == 0
        else:
            count = int(2 ** random.uniform(0, 16))
            address = UMF.umfPoolMalloc(blocks, size_of(4 * count))
            assert address
            assert zeusm.pointer_attributes(address).usm_type == usm_type
            live[address] = random.integers(0, 2**32, count, "u4")
            numbers(address, count)[:] = live[address]
    for address, wanted in live.items():
        assert np.array_equal(numbers(address, len(wanted)), wanted)
        assert UMF.umfPoolFree(blocks, ctypes.c_void_p(address)) == 0


@pytest.mark.parametrize("alignment", [64, 4096, 65536])
def test_alignments(pool, alignment):
    blocks = pool("Disjoint", "device")
    for size in (1, 100, 5000, 3 << 20):
        address = UMF.umfPoolAlignedMalloc(blocks, size_of(size), size_of(alignment))
        assert address % alignment == 0
        assert UMF.umfPoolFree(blocks, ctypes.c_void_p(address)) == 0


def test_the_driver_copies_between_blocks(pool, handles):
    context, device = handles
    source = UMF.umfPoolMalloc(pool("Disjoint", "host"), size_of(4000))
    target = UMF.umfPoolMalloc(pool("Disjoint", "device"), size_of(4000))
    numbers(source, 1000)[:] = np.arange(1000)
    description = (ctypes.c_uint64 * 5)(0x0E)  # ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC
    description[3] = 1  # ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS, behind the flags
    commands = made(ZE.zeCommandListCreateImmediate, context, device, description)
    ends = ctypes.c_void_p(target), ctypes.c_void_p(source)
    copy = ZE.zeCommandListAppendMemoryCopy
    assert copy(commands, *ends, size_of(4000), None, ctypes.c_uint32(0), None) == 0
    assert ZE.zeCommandListHostSynchronize(commands, ctypes.c_uint64(2**64 - 1)) == 0
    assert np.array_equal(numbers(target, 1000), np.arange(1000))
    assert ZE.zeCommandListDestroy(commands) == 0
    for address in (source, target):
        assert UMF.umfFree(ctypes.c_void_p(address)) == 0


@pytest.mark.parametrize("kind", ["Proxy", "Disjoint"])
def test_threads(pool, kind):
    blocks, wrong = pool(kind, "shared"), []

    def work(value):
        for step in range(100):
            addresses = [UMF.umfPoolMalloc(blocks, size_of(64 << i)) for i in range(8)]
            for i, address in enumerate(addresses):
                numbers(address, 16 << i)[:] = value
            for i, address in enumerate(addresses):
                wrong.extend([step] * int((numbers(address, 16 << i) != value).any()))
                UMF.umfPoolFree(blocks, ctypes.c_void_p(address))

    threads = [threading.Thread(target=work, args=(value,)) for value in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not wrong


def test_too_much_is_refused(pool):
    blocks = pool("Proxy", "device")
    assert UMF.umfPoolMalloc(blocks, size_of(1 << 50)) is None
    assert UMF.umfPoolGetLastAllocationError(blocks) != 0
    assert UMF.umfPoolFree(blocks, ctypes.c_void_p(UMF.umfPoolMalloc(blocks, size_of(64)))) == 0


def handle_of(address):
    """The bytes of UMF's IPC handle."""
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    get = UMF.umfGetIPCHandle
    assert get(ctypes.c_void_p(address), ctypes.byref(handle), ctypes.byref(size)) == 0
    return handle, ctypes.string_at(handle, size.value)


def read_in_another_process(usm_type, handle, count):
    """What a process of its own, which is this file, reads by a handle."""
    command = [sys.executable, __file__, usm_type, handle.hex(), str(count)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return np.frombuffer(bytes.fromhex(run.stdout), "u4")


@pytest.mark.parametrize("usm_type", ["device", "shared"])
def test_another_process_opens_a_block(pool, usm_type):
    blocks = pool("Disjoint", usm_type)
    addresses = [UMF.umfPoolMalloc(blocks, size_of(4000)) for _ in range(3)]
    for i, address in enumerate(addresses):
        numbers(address, 1000)[:] = np.arange(1000) + 1000 * i
    for i, address in enumerate(addresses):
        handle, data = handle_of(address)
        found = read_in_another_process(usm_type, data, 1000)
        assert np.array_equal(found, np.arange(1000) + 1000 * i)
        assert UMF.umfPutIPCHandle(handle) == 0
        assert UMF.umfPoolFree(blocks, ctypes.c_void_p(address)) == 0


def main(usm_type, data, count):
    """Opens an IPC handle by a pool like that of the exporter, and prints the block's bytes."""
    blocks = pool_of(*level_zero(), "Disjoint", usm_type)
    handle = ctypes.create_string_buffer(bytes.fromhex(data))
    opened = made(UMF.umfOpenIPCHandle, made(UMF.umfPoolGetIPCHandler, blocks), handle)
    print(numbers(opened.value, int(count)).tobytes().hex())
    assert UMF.umfCloseIPCHandle(opened) == 0
    assert UMF.umfPoolDestroy(blocks) == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
