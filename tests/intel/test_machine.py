"""zeusm uses Intel's driver, and the driver reports the properties of the simulated machine."""

from pathlib import Path

import zeusm.memory

MACHINE = dict(
    line.split("=", 1) for line in Path("/run/xe-sim/environment").read_text().splitlines()
)["XE_SIM_MACHINE"]
NAMES = {
    "lnl": ["Intel(R) Arc(TM) Graphics"],
    "bmg": ["Intel(R) Arc(TM) B580 Graphics"],
    "bmg2": ["Intel(R) Arc(TM) B580 Graphics"] * 2,
}


def test_the_system_s_driver_serves():
    assert zeusm.runtime().kind == "system"


def test_sycl_sees_the_same_devices():
    import dpctl

    names = [device.name for device in dpctl.get_devices(backend="level_zero")]
    assert names == NAMES[MACHINE]


def test_bytes_go_there_and_back():
    source = bytes(range(256)) * 4096
    device = zeusm.memory.MemoryUSMDevice(len(source))
    shared = zeusm.memory.MemoryUSMShared(len(source))
    device.copy_from_host(source)
    shared.copy_from_device(device)
    assert bytes(memoryview(shared)) == source
