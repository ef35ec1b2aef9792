"""The Level Zero loader, and Intel's driver behind it. Each is opened in a new process."""

from collections.abc import Iterator

from zeusm._doctor import distribution
from zeusm._doctor.finding import Finding, State
from zeusm._doctor.gpu import WSL_NODE, gpus
from zeusm._doctor.machine import Machine
from zeusm._doctor.sycl import ask

LOADER = "libze_loader.so.1"
DRIVER = "libze_intel_gpu.so.1"

#: Prints the path of a library and, of a loader, its version, as JSON.
OPEN = """
import ctypes, json, struct, sys
try:
    library = ctypes.CDLL({name!r})
except OSError as error:
    sys.exit(str(error))
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


def find_loader(machine: Machine) -> Iterator[Finding]:
    """Open the Level Zero loader."""
    yield find(machine, "Level Zero loader", LOADER, "libze1")


def find_driver(machine: Machine) -> Iterator[Finding]:
    """Open Intel's driver."""
    yield find(machine, "Level Zero driver", DRIVER, "libze-intel-gpu1")


def find(machine: Machine, step: str, name: str, package: str) -> Finding:
    found, error = ask(machine, OPEN.format(name=name, stem=name.split(".")[0]))
    if found is not None:
        version = f", version {found['version']}" if found["version"] else ""
        return Finding(step, State.OK, f"{found['path']}{version}")
    is_missing = error.startswith(f"{name}: cannot open shared object file")
    is_wsl = machine.path(WSL_NODE).exists()
    if is_missing and not gpus(machine) and not is_wsl:
        return Finding(step, State.ABSENT, f"{name} is not installed; no GPU needs it")
    if is_missing and is_wsl:
        error = f"{name} is not installed; an Intel GPU needs it under WSL, too"
    # Otherwise the dynamic linker names a library that this one needs.
    remedy, text = distribution.install(machine, package, again=not is_missing)
    return Finding(step, State.WRONG, f"{error}; {text}" if text else error, remedy)
