"""How the distribution installs the Level Zero loader and Intel's driver."""

import re
import shlex

from zeusm._doctor.machine import Machine

#: The names of Fedora, and of EPEL for RHEL 10, for Debian's packages.
FEDORA = {"libze1": "oneapi-level-zero", "libze-intel-gpu1": "intel-level-zero"}
#: The first versions with Intel's driver. Earlier ones have none, or one under another name.
DRIVER = "libze-intel-gpu1"
FIRST = {"debian": 13.0, "ubuntu": 24.04}
INTEL = "Intel's packages are needed: https://dgpu-docs.intel.com"


def install(machine: Machine, package: str, *, again: bool) -> tuple[str | None, str]:
    """Return the command that installs a package, which has Debian's name here, or None, and what else to say."""
    release = os_release(machine)
    family = {release.get("ID", "debian"), *release.get("ID_LIKE", "").split()}
    if family & {"debian", "ubuntu"}:
        first = FIRST.get(release.get("ID", ""))
        version = re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", release.get("VERSION_ID", ""))
        if package == DRIVER and first and version and float(version[0]) < first:
            return None, f"this distribution has no {package}, so {INTEL}"
        return f"sudo apt install {'--reinstall ' if again else ''}{package}", ""
    if family & {"fedora", "rhel", "centos"}:
        return f"sudo dnf {'reinstall' if again else 'install'} {FEDORA.get(package, package)}", ""
    return (
        None,
        f"the package of Debian and Ubuntu is {package}, that of Fedora {FEDORA.get(package, package)}",
    )


def os_release(machine: Machine) -> dict[str, str]:
    """Return the fields of `os-release`."""
    text = machine.read("/etc/os-release") or machine.read("/usr/lib/os-release") or ""
    try:
        items = shlex.split(text, comments=True)
    except ValueError:  # A quote that is not closed.
        return {}
    return {name: value for name, _, value in (item.partition("=") for item in items)}
