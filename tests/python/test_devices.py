"""The devices of the CPU runtime: one GPU to SYCL, or what test_several_devices.py presents."""

import gc
import os
import pickle

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from tensors import tensor

NAMES = [device.filter_string for device in dpctl.get_devices(backend="level_zero")]
CONTENT = bytes(range(256)) * 16
GPUS = "ZEUSM_TEST_GPUS"  # How many test_several_devices.py has presented.

# dpnp 0.15 raises deprecation warnings of its own.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(params=NAMES)
def name(request):
    """The filter string of each device."""
    return request.param


@pytest.fixture(params=[(to, out) for to in NAMES for out in NAMES], ids=" from ".join)
def pair(request):
    """The filter strings of any two devices."""
    return request.param


def filled(memory_class, **where):
    memory = memory_class(len(CONTENT), **where)
    memory.copy_from_host(CONTENT)
    return memory


def test_the_devices_are_listed_and_the_gpu_is_the_default():
    listed = dpctl.get_devices(backend="level_zero")
    gpus = [f"level_zero:gpu:{number}" for number in range(int(os.environ.get(GPUS, 1)))]
    has_cpu = os.environ.get("ZEUSM_CPU_DEVICES", "").endswith("+cpu")
    expected = [*gpus, *["level_zero:cpu:0"] * has_cpu]
    assert [device.filter_string for device in listed] == expected
    assert dpctl.SyclDevice() == listed[0]
    assert dpctl.SyclQueue().sycl_device == listed[0]
    assert zm.MemoryUSMDevice(8).sycl_device == listed[0]
    assert zeusm.empty(3).sycl_device == listed[0]
    assert [device.name for device in listed] == zeusm.runtime().device_names
    assert len(set(zeusm.runtime().device_names)) == len(listed)


def test_a_selector_can_hide_either(fresh, name):
    program = """
        import sys, zeusm.memory, dpctl
        print([device.filter_string for device in dpctl.get_devices()])
        print(zeusm.memory.MemoryUSMShared(8).sycl_device.filter_string)
    """
    selector = name.rpartition(":")[0]
    variables = {name: value for name, value in os.environ.items() if name.startswith("ZE")}
    result = fresh(program, env=variables | {"ONEAPI_DEVICE_SELECTOR": selector})
    selected = [name for name in NAMES if name.startswith(selector)]
    assert result.stdout == f"{selected}\n{selected[0]}\n"


def test_memory_is_of_its_device_here_and_in_dpctl(name, memory_class):
    device = dpctl.SyclDevice(name)
    # The default context has all devices, a new one has only this one.
    own = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    for queue in [name, device, dpctl.SyclQueue(name), own]:
        memory = filled(memory_class, queue=queue)
        theirs = dpctl.memory.as_usm_memory(memory)
        assert theirs._pointer == memory._pointer
        assert theirs.sycl_context == memory.sycl_context
        assert memory.sycl_queue.sycl_device == device
        if memory.get_usm_type() != "host":  # Host memory belongs to no device.
            assert memory.sycl_device == theirs.sycl_device == device
        assert theirs.copy_to_host().tobytes() == CONTENT


def test_each_device_has_its_pools(name, usm_type):
    pool = zm.get_pool(usm_type, name)
    other_name = NAMES[NAMES.index(name) - 1]
    other = zm.get_pool(usm_type, other_name)
    gc.collect()
    before = pool.statistics().used_count, other.statistics().used_count
    memory = getattr(zm, f"MemoryUSM{usm_type.title()}")(100, queue=name)
    assert (pool.statistics().used_count, other.statistics().used_count) == (
        before[0] + 1,
        before[1] + (other_name == name),
    )
    memory.close()


def test_memory_is_copied_between_devices(pair, usm_type):
    to, out = pair
    source = filled(zm.MemoryUSMDevice, queue=out)
    memory_class = getattr(zm, f"MemoryUSM{usm_type.title()}")
    copied = memory_class(len(CONTENT), queue=to)
    copied.copy_from_device(source)
    assert copied.tobytes() == CONTENT
    copied.memset(0)
    source.memset_async(7)
    copied.copy_from_device_async(source).wait()
    assert copied.tobytes() == b"\7" * len(CONTENT)
    if to != out and os.environ.get("ZEUSM_CPU_PEER_ACCESS") == "0":
        return  # dpctl ignores that SYCL cannot copy.
    # By dpctl, from and to zeusm's memory.
    theirs = dpctl.memory.MemoryUSMDevice(len(CONTENT), queue=dpctl.SyclQueue(to))
    theirs.copy_from_device(source)
    assert theirs.copy_to_host().tobytes() == b"\7" * len(CONTENT)


def test_a_large_copy_between_contexts_of_two_devices(pair):
    queues = []
    for name in pair:
        device = dpctl.SyclDevice(name)
        queues.append(dpctl.SyclQueue(dpctl.SyclContext([device]), device))
    numbers = np.random.default_rng(1).integers(0, 256, (9 << 20) + 5, np.uint8)
    source = zm.MemoryUSMDevice(numbers.nbytes, queue=queues[1])
    source.copy_from_host(numbers)
    for end in ["copy_from_device", "copy_from_device_async"]:
        copied = zm.MemoryUSMShared(numbers.nbytes, queue=queues[0])
        event = getattr(copied, end)(source)
        if event is not None:
            event.wait()
        assert np.array_equal(np.asarray(copied), numbers)


def test_a_pickle_returns_to_its_device(name):
    for memory in [filled(zm.MemoryUSMDevice, queue=name), filled(zm.MemoryUSMHost, queue=name)]:
        again = pickle.loads(pickle.dumps(memory))
        assert again.tobytes() == CONTENT
        if memory.get_usm_type() == "device":
            assert again.sycl_device == memory.sycl_device


def test_a_handle_opens_on_the_device_of_its_memory(pair):
    memory = filled(zm.MemoryUSMDevice, queue=pair[1])
    handle = memory.ipc_handle()
    device = dpctl.SyclDevice(pair[0])
    if pair[0] == pair[1]:
        with zm.IPCMemoryHandle.open(handle, device=device) as opened:
            assert opened.sycl_device == device
            assert opened.tobytes() == CONTENT
    else:
        with pytest.raises(zm.IPCError, match="device"):
            zm.IPCMemoryHandle.open(handle, device=device)
        theirs = zm.MemoryUSMDevice(8, queue=device).ipc_handle()
        assert handle.device_uuid != theirs.device_uuid


def test_arrays_and_dlpack_keep_the_device(name, usm_type):
    numbers = np.arange(12.0).reshape(3, 4)
    array = zeusm.asarray(numbers, usm_type=usm_type, device=name)
    device = dpctl.SyclDevice(name)
    assert array.sycl_device == array.sycl_queue.sycl_device == device
    kind, number = array.__dlpack_device__()
    assert (kind, dpctl.get_devices()[number]) == (14, device)
    ours = zeusm.from_dlpack(array)
    assert (ours._pointer, ours.sycl_device) == (array._pointer, device)
    # The shared queue of the device; dpctl makes another one at an import.
    theirs = tensor.asarray(array).to_device(device)
    assert theirs.sycl_device == device
    theirs += 1
    theirs.sycl_queue.wait()
    np.testing.assert_array_equal(array.copy_to_host(), numbers + 1)
    for back in [zeusm.from_dlpack(theirs), zeusm.as_usm_array(theirs)]:
        assert (back._pointer, back.sycl_device) == (array._pointer, device)
