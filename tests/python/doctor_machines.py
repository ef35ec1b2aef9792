"""Machines for the tests of `zeusm doctor`."""

from zeusm._doctor import Machine

GPU = "sys/bus/pci/devices/0000:03:00.0"


def machine(tmp_path, environment=None, **files):
    """A machine with one Intel GPU, and files by their paths."""
    files = {
        f"{GPU}/vendor": "0x8086",
        f"{GPU}/class": "0x030000",
        f"{GPU}/device": "0xe20b",
    } | files
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return Machine(tmp_path, environment or {})
