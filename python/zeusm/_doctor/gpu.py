"""Intel GPUs: on the PCI bus, with the kernel's driver, with device nodes that this user can open.

The nodes are those that zeusm itself finds; what is below them, down to the PCI bus, only the doctor examines.
"""

import errno
import getpass
import grp
import os
from collections.abc import Iterator
from pathlib import Path

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine
from zeusm._zeusm import _gpu_nodes

INTEL = "0x8086"
#: The first byte of the PCI class of displays.
DISPLAY = "0x03"
DRIVERS = {"i915", "xe"}
#: The device node of WSL, for GPUs of any vendor.
WSL_NODE = "/dev/dxg"


def gpus(machine: Machine) -> list[Path]:
    """Return the folders of Intel's GPUs in sysfs."""
    found = sorted(machine.path("/sys/bus/pci/devices").glob("*"))
    return [
        device
        for device in found
        if machine.read(device / "vendor") == INTEL
        and (machine.read(device / "class") or "").startswith(DISPLAY)
    ]


def find(machine: Machine) -> Iterator[Finding]:
    """Go from the PCI bus to the device nodes."""
    devices, nodes = gpus(machine), dict(_gpu_nodes(machine.root))
    wsl = machine.path(WSL_NODE)
    if wsl in nodes:
        yield wsls(wsl, nodes[wsl])
    elif not devices:
        yield Finding("PCI device", State.ABSENT, "no Intel GPU on the PCI bus")
    drivers = []
    for device in devices:
        number = machine.read(device / "device") or "of unknown number"
        yield Finding("PCI device", State.OK, f"{device.name}: Intel GPU {number}")
        driver = device / "driver"
        if not driver.exists():
            text = f"{device.name} has no kernel driver"
            yield Finding("kernel driver", State.WRONG, text, bind(machine, device))
        elif (name := driver.resolve().name) not in DRIVERS:
            text = f"{device.name} is bound to {name}, as opposed to xe or i915"
            release = f"echo {device.name} | sudo tee /sys/bus/pci/drivers/{name}/unbind"
            yield Finding("kernel driver", State.WRONG, text, release)
        else:
            yield Finding("kernel driver", State.OK, f"{device.name}: {name}")
            drivers.append(name)
            yield node(machine, device, nodes)
    if drivers.count("xe") > 1 and shows_several(machine.environment.get("ZE_AFFINITY_MASK", "")):
        text = "with several GPUs the driver may take as much host memory as programs allocate on a GPU"
        remedy = "export ZE_AFFINITY_MASK=0  # for programs that use one GPU"
        yield Finding("host memory", State.NOTE, text, remedy)


def shows_several(mask: str) -> bool:
    """Whether `ZE_AFFINITY_MASK` has more than one GPU; without a value it has all."""
    return mask == "" or len({part.partition(".")[0] for part in mask.split(",")}) > 1


def wsls(path: Path, error: int | None) -> Finding:
    """Check the device node of WSL, which does not tell whose GPU it is."""
    if error is None:
        return Finding("WSL", State.OK, f"{path} is the device of the host's GPU, of any vendor")
    remedy = "docker run --device /dev/dxg --volume /usr/lib/wsl:/usr/lib/wsl:ro ..."
    if error not in (errno.EPERM, errno.ENOENT):
        remedy = "wsl --update  # on Windows; and update the GPU's driver there"
    return Finding("WSL", State.WRONG, f"{path}: {os.strerror(error)}", remedy)


def bind(machine: Machine, device: Path) -> str:
    """Return the command that gives a GPU its driver. Older GPUs have i915, and older kernels no xe."""
    drivers = machine.path("/sys/bus/pci/drivers")
    if any((drivers / name).exists() for name in DRIVERS):
        # As after `unbind`: a module that is loaded does not look at the device again.
        return f"echo {device.name} | sudo tee /sys/bus/pci/drivers_probe"
    return "sudo modprobe --all i915 xe"


def node(machine: Machine, device: Path, nodes: dict[Path, int | None]) -> Finding:
    """Check the render node of a GPU with a driver, given all nodes and the errors of those that cannot be opened."""
    step = "device node"
    names = [entry.name for entry in sorted((device / "drm").glob("renderD*"))]
    if not names:
        text = f"the kernel's driver made no render node for {device.name}"
        return Finding(step, State.WRONG, text, "sudo dmesg | grep -iE 'xe|i915'")
    path = machine.path(f"/dev/dri/{names[0]}")
    error = nodes.get(path, errno.ENOENT)
    if error == errno.EACCES and (folder := closed_folder(path)) is not None:
        text = f"{folder}: {os.strerror(error)}"
        return Finding(step, State.WRONG, text, f"sudo chmod a+x {folder}")
    if error is not None:
        return Finding(step, State.WRONG, f"{path}: {os.strerror(error)}", remedy(path, error))
    return Finding(step, State.OK, str(path))


def remedy(path: Path, error: int) -> str:
    """Return the command that lets this user open a node."""
    if error == errno.EACCES:
        return f"sudo usermod --append --groups {group_of(path)} {user()}  # then log in again"
    if error in (errno.ENOENT, errno.EPERM):
        return "docker run --device /dev/dri ...  # or the same option of another container runtime"
    return "sudo dmesg | grep -iE 'xe|i915'"


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # In a container, whose users may have no names.
        return str(os.getuid())


def closed_folder(path: Path) -> Path | None:
    """Return the first folder on the way to a file that this user may not search."""
    folders = reversed(path.parents)
    return next((folder for folder in folders if not os.access(folder, os.X_OK)), None)


def group_of(path: Path) -> str:
    try:
        number = path.stat().st_gid
    except OSError:
        return "render"  # The usual one.
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:  # In a container, whose groups are not those of the machine.
        return str(number)
