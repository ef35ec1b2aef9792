"""Windows itself, its display adapters, and their drivers."""

from collections.abc import Iterator

from zeusm._doctor.finding import Finding, State
from zeusm._doctor.windows_machine import Adapter, WindowsMachine

#: Intel's number in the identity of a PCI device.
INTEL = "ven_8086"
#: The value of an adapter's driver from which the Level Zero loader knows the driver's library.
LEVEL_ZERO = "LevelZeroDriverPath"
#: The command that installs Intel's own updater of drivers.
UPDATE = "winget install Intel.IntelDriverAndSupportAssistant"
#: The first version for which Intel's drivers have Level Zero.
FIRST = 10


def find_version(machine: WindowsMachine) -> Iterator[Finding]:
    """Report the version, which for Windows 11 begins with 10, too."""
    first = machine.version.partition(".")[0]
    is_old = first.isdigit() and int(first) < FIRST
    text = (
        f"{machine.version}; Intel's drivers need {FIRST} or later" if is_old else machine.version
    )
    yield Finding("Windows", State.WRONG if is_old else State.OK, text)


def gpus(machine: WindowsMachine) -> list[Adapter]:
    """Return Intel's adapters."""
    return [it for it in machine.adapters() if INTEL in str(it.get("MatchingDeviceId", "")).lower()]


def find_gpu(machine: WindowsMachine) -> Iterator[Finding]:
    """List Intel's adapters with their drivers."""
    found = gpus(machine)
    if not found:
        others = ", ".join(str(it.get("DriverDesc")) for it in machine.adapters())
        text = f"no Intel GPU among the display adapters: {others or 'there are none'}"
        yield Finding("GPU", State.ABSENT, text)
    for adapter in found:
        name = adapter.get("DriverDesc", "Intel GPU")
        yield Finding("GPU", State.OK, str(name))
        version, date = (adapter.get(key, "unknown") for key in ("DriverVersion", "DriverDate"))
        text = f"version {version} of {date}"
        if adapter.get(LEVEL_ZERO):
            yield Finding("GPU driver", State.OK, text)
        else:
            text += (
                f" has no Level Zero ({LEVEL_ZERO} in the registry): it is too old, or Windows' own"
            )
            yield Finding("GPU driver", State.WRONG, text, UPDATE)
