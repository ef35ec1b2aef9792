"""A library of Level Zero, opened in a new process."""

from pathlib import Path

from zeusm._doctor.machine import Machine
from zeusm._doctor.sycl import ask

#: Prints the path of a library and, of a loader, its version, as JSON.
OPEN = """
import ctypes, json, struct, sys
try:
    library = ctypes.CDLL({name!r})
except OSError as error:
    sys.exit(str(error))
paths = []
if sys.platform == "linux":
    paths = [line.split()[-1] for line in open("/proc/self/maps") if {stem!r} in line]
version = None
if hasattr(library, "zelLoaderGetVersions"):
    # zel_component_version_t: a name of 64 bytes, the version of the specification, three numbers.
    count = ctypes.c_size_t(8)
    components = ctypes.create_string_buffer(8 * 80)
    if library.zelLoaderGetVersions(ctypes.byref(count), components) == 0 and count.value:
        numbers = struct.unpack_from("iii", components, 68)
        # Older loaders know their version after zeInit only.
        version = ".".join(map(str, numbers)) if any(numbers) else None
print(json.dumps({{"path": paths[0] if paths else {name!r}, "version": version}}))
"""


def opened(machine: Machine, name: str) -> tuple[str, str]:
    """Open a library. Return its path with the version of a loader, or the linker's error."""
    found, error = ask(machine, OPEN.format(name=name, stem=Path(name).name.split(".")[0]))
    if found is None:
        return "", error
    version = f", version {found['version']}" if found["version"] else ""
    return f"{found['path']}{version}", ""
