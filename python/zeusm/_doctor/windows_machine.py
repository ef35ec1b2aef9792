"""The Windows machine that is examined; tests have others."""

import locale
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zeusm._doctor.machine import Machine

#: The registry's key of display adapters: a key for each, with a number as its name.
ADAPTERS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"

#: What Python says of an extension module whose libraries are not found.
DLL_NOT_FOUND = "DLL load failed while importing"

#: The values of an adapter in the registry, by their names.
Adapter = dict[str, Any]


def registered_adapters() -> list[Adapter]:
    """Return the display adapters of this machine's registry."""
    if sys.platform != "win32":
        return []
    import winreg

    found = []
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, ADAPTERS) as key:
        names = [winreg.EnumKey(key, index) for index in range(winreg.QueryInfoKey(key)[0])]
        for name in filter(str.isdigit, names):
            with winreg.OpenKey(key, name) as adapter:
                count = winreg.QueryInfoKey(adapter)[1]
                values = [winreg.EnumValue(adapter, index) for index in range(count)]
            found.append({name: value for name, value, _ in values})
    return found


@dataclass(frozen=True)
class WindowsMachine(Machine):
    """Windows' folder, and what the registry says."""

    root: Path = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"))
    version: str = platform.version()
    adapters: Callable[[], list[Adapter]] = registered_adapters
    #: Windows' for texts that are not Unicode.
    code_page: str = locale.getencoding()
    is_virtual: bool = sys.prefix != sys.base_prefix

    @property
    def libraries(self) -> Path:
        """The folder of the environment into which packages put their libraries."""
        return self.prefix / "Library" / "bin"

    def unset(self, variable: str) -> str:
        """Return PowerShell's command."""
        return f"Remove-Item Env:{variable}"

    def import_remedy(self, error: str) -> str | None:
        """Return the command for a virtual environment, if this one has what is not found: dpctl names its folder to Windows in
        virtual ones only."""
        has_sycl = any(self.libraries.glob("sycl*.dll"))
        if self.is_virtual or not has_sycl or DLL_NOT_FOUND not in error:
            return None
        return "python -m venv .venv  # in which dpctl finds SYCL's libraries"

    def folders(self) -> list[Path]:
        """Return the folders in which programs find libraries: that of packages' libraries, and those of PATH."""
        paths = self.environment.get("PATH", "").split(os.pathsep)
        return [self.libraries, *(Path(path) for path in paths if path)]
