"""Intel's bindings of Sysman on the CPU runtime: the device and its memory, as zeusm and the system have them."""

import ctypes

import pytest
import zeusm
import zeusm.memory as zm

# isort: split
import pyzes

# It opens the system's loader by its path, which no variable changes, and Debian's has no `zesInit`.
pyzes.gpuLib = ctypes.CDLL(str(zeusm.runtime().path))


def listed(function, kind, *parent):
    """The handles of a function that counts first."""
    count = ctypes.c_uint32()
    assert function(*parent, ctypes.byref(count), None) == 0
    handles = (kind * count.value)()
    assert function(*parent, ctypes.byref(count), handles) == 0
    return list(handles)


def filled(function, handle, structure):
    assert function(handle, ctypes.byref(structure)) == 0
    return structure


@pytest.fixture(scope="module")
def device():
    assert pyzes.zesInit(0) == 0
    (driver,) = listed(pyzes.zesDriverGet, pyzes.zes_driver_handle_t)
    (device,) = listed(pyzes.zesDeviceGet, pyzes.zes_device_handle_t, driver)
    return device


@pytest.fixture(scope="module")
def module(device):
    (module,) = listed(pyzes.zesDeviceEnumMemoryModules, pyzes.zes_mem_handle_t, device)
    return module


def test_the_device_is_that_of_zeusm(device):
    properties = filled(pyzes.zesDeviceGetProperties, device, pyzes.zes_device_properties_t())
    assert properties.core.name.decode().startswith("zeusm CPU runtime")
    assert properties.core.vendorId == 0x8086
    assert properties.numSubdevices == 0


def test_the_memory_is_that_of_zeusm(module):
    state = filled(pyzes.zesMemoryGetState, module, pyzes.zes_mem_state_t())
    free, total = zm.mem_get_info()
    assert state.size == total
    assert 0 < state.free <= state.size
    assert abs(state.free - free) < 1 << 30  # Other processes allocate, too.


def test_what_is_allocated_is_not_free(module):
    def free():
        return filled(pyzes.zesMemoryGetState, module, pyzes.zes_mem_state_t()).free

    size, taken = 1 << 30, []
    for _ in range(5):  # Other processes free memory meanwhile, not every time.
        before = free()
        memory = zm.MemoryUSMDevice(size)
        memory.memset(1)
        taken.append(before - free())
        memory.close()
    assert max(taken) > size // 2


def test_what_is_not_there_is_refused_or_none(device):
    count = ctypes.c_uint32()
    for what in ("PowerDomains", "FrequencyDomains", "TemperatureSensors", "EngineGroups"):
        result = getattr(pyzes, f"zesDeviceEnum{what}")(device, ctypes.byref(count), None)
        assert result == pyzes.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE or count.value == 0
