"""zeusm's runtime, its compiler of kernels, SYCL's view of its devices, and a kernel. Each is tried in a new process."""

import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zeusm._doctor import linker, variables
from zeusm._doctor.finding import Finding, State
from zeusm._doctor.machine import Machine, last_line

RUNTIME = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import zeusm
runtime = zeusm.runtime()
print(json.dumps({
    "kind": runtime.kind,
    "path": str(runtime.path),
    "reason": runtime.reason,
    "devices": runtime.device_names,
    "warnings": [str(warning.message) for warning in caught],
}))
"""
IPC = "import json, zeusm.memory; print(json.dumps(zeusm.memory.IPCMemoryHandle.is_available()))"
DEVICES = """
import json, zeusm.memory, dpctl
devices = [device.filter_string for device in dpctl.get_devices()]
print(json.dumps({"version": dpctl.__version__, "devices": devices}))
"""
CACHE = """
import json
from zeusm._doctor.level_zero import Driver
print(json.dumps(Driver().module_cache()))
"""
COMPILER = """
import json, os
os.environ["ZEUSM_CACHE_SIZE"] = "0"
import zeusm
from zeusm._doctor.build_kernel import build
print(json.dumps([zeusm.runtime().kind, build()]))
"""
KERNEL = """
import json, zeusm.memory, dpnp
numbers = dpnp.arange(1000)
print(json.dumps([int(numbers.sum()), numbers.sycl_device.name]))
"""

#: The packages with the OpenCL runtime that builds kernels on the CPU runtime.
OPENCL = "pip install intel-opencl-rt intel-cmplr-lib-rt"
#: What the CPU runtime says without an OpenCL runtime, and of one that does not work.
NO_OPENCL = "no OpenCL runtime for the CPU is installed"
WRONG_CHOICE = "names no OpenCL runtime for the CPU"
OPENCL_FAILS = "the OpenCL runtime for the CPU does not work"
NOT_FOUND = (NO_OPENCL, WRONG_CHOICE)
#: What the dynamic linker says of a library that another one needs; Windows does not name it.
LACKS_LIBRARY = re.compile(r"cannot open shared object file|\(os error 126\)")
#: The variable with the path of an OpenCL runtime that replaces the installed one.
OPENCL_LIBRARY = "ZEUSM_OPENCL_LIBRARY"
#: The variable with the instruction set of its kernels, and the error of one that it does not know.
OPENCL_TARGET = "CL_CONFIG_CPU_TARGET_ARCH"
UNKNOWN_TARGET = re.compile(f"{OPENCL_FAILS}.*CL_DEVICE_NOT_AVAILABLE")
#: What SYCL and dpctl say if no device is left, or of a selector that cannot be read.
NO_DEVICE = re.compile(r"SyclDeviceCreationError|ONEAPI_DEVICE_SELECTOR|Incomplete selector")
#: What the dynamic linker says of a C++ library that is too old.
OLD_LIBRARY = re.compile(r"version `(?:GLIBCXX|CXXABI)_[\d.]+' not found")

#: Whether the C++ library has what the wheels of dpctl and dpnp need.
NEW_LIBRARY = """
import ctypes, json
ctypes.CDLL("libstdc++.so.6")
lines = [line for line in open("/proc/self/maps") if "/libstdc++.so.6" in line]
path = lines[0].rstrip("\\n").split(maxsplit=5)[5]
print(json.dumps(b"GLIBCXX_3.4.29\\0" in open(path, "rb").read()))
"""
NEEDS_NEWER = (
    "the wheels of dpctl and dpnp need libstdc++ of GCC 11 or later (GLIBCXX_3.4.29), so they need a newer distribution; "
    "zeusm works without them"
)
#: The last version of Python for which there are wheels of dpctl 0.22 and dpnp 0.20.
LAST_PYTHON = (3, 14)


def ask(machine: Machine, program: str) -> tuple[Any, str]:
    """Return the value that a program prints as JSON, or None and the error."""
    run = machine.run(program)
    lines = run.stdout.strip().splitlines()
    if run.returncode or not lines:
        return None, cause(run)
    return json.loads(lines[-1]), ""


def cause(run: subprocess.CompletedProcess[str]) -> str:
    """Return the line on OpenCL, which SYCL's error has in its middle, or the last line of a program's errors."""
    causes = (*NOT_FOUND, OPENCL_FAILS)
    lines = (line for line in run.stderr.splitlines() if any(text in line for text in causes))
    return next(lines, last_line(run))


def opencl_remedy(machine: Machine, error: str) -> str | None:
    """Return the command that has programs find an OpenCL runtime, or what the one that was found lacks."""
    lacks_library = OPENCL_FAILS in error and LACKS_LIBRARY.search(error)
    if (found := linker.remedy(machine, error)) is not None:
        return found
    if not any(text in error for text in NOT_FOUND) and not lacks_library:
        return variables.unset(machine, [OPENCL_TARGET]) if UNKNOWN_TARGET.search(error) else None
    chosen = machine.environment.get(OPENCL_LIBRARY)
    is_elsewhere = chosen and Path(chosen).parent != machine.libraries
    return machine.unset(OPENCL_LIBRARY) if is_elsewhere else OPENCL


def find_runtime(machine: Machine) -> Iterator[Finding]:
    """Select zeusm's runtime, and list its devices."""
    step = "zeusm's runtime"
    found, error = ask(machine, RUNTIME)
    if found is None:
        yield Finding(step, State.WRONG, error, variables.named(machine, error))
        return
    yield Finding(step, State.OK, f"{found['kind']}, {found['path']}: {found['reason']}")
    for warning in found["warnings"]:
        yield Finding(step, State.WRONG, warning)
    for device in found["devices"]:
        yield Finding("device", State.OK, device)


def find_ipc(machine: Machine) -> Iterator[Finding]:
    """Ask whether memory can be sent to other processes."""
    found, error = ask(machine, IPC)
    if found:
        yield Finding("IPC", State.OK, "memory can be exported to other processes")
    else:
        text = error or "the driver does not support it, or the system forbids it"
        yield Finding("IPC", State.NOTE, f"memory cannot be exported to other processes: {text}")


def find_compiler(machine: Machine) -> Iterator[Finding]:
    """Build an empty kernel, which on the CPU runtime needs an OpenCL runtime."""
    step = "kernel compiler"
    found, error = ask(machine, COMPILER)
    if found is None:
        state = State.ABSENT if NO_OPENCL in error else State.WRONG
        # Errors of an OpenCL runtime name its variable as advice.
        other = None if OPENCL_FAILS in error else variables.named(machine, error)
        yield Finding(step, state, error, opencl_remedy(machine, error) or other)
        return
    kind, library = found
    text = f"the OpenCL runtime {library}" if kind == "cpu" else library
    yield Finding(step, State.OK, text)


def find_cache(machine: Machine) -> Iterator[Finding]:
    """Ask the CPU runtime what it keeps of built modules."""
    found, _ = ask(machine, CACHE)
    # The other steps report errors of the runtime.
    if found is not None:
        is_kept = not found.startswith("none: ") and "; no more is kept: " not in found
        state = State.OK if is_kept else State.NOTE
        yield Finding("module cache", state, found)


def not_installed(machine: Machine, step: str, package: str) -> Finding:
    """Say that dpctl or dpnp is missing, with the command that installs it where its wheels work."""
    text = f"{package} is not installed"
    if machine.python > LAST_PYTHON:
        last = ".".join(map(str, LAST_PYTHON))
        return Finding(step, State.ABSENT, f"{text}; the last Python with wheels of it is {last}")
    if ask(machine, NEW_LIBRARY)[0] is False:
        return Finding(step, State.ABSENT, f"{text}; {NEEDS_NEWER}")
    return Finding(step, State.ABSENT, text, f"pip install {package}")


def find_dpctl(machine: Machine) -> Iterator[Finding]:
    """List SYCL's devices."""
    step = "SYCL"
    if importlib.util.find_spec("dpctl") is None:
        yield not_installed(machine, step, "dpctl")
        return
    found, error = ask(machine, DEVICES)
    if found is None and OLD_LIBRARY.search(error):
        yield Finding(step, State.WRONG, f"{error}; {NEEDS_NEWER}")
        return
    if found is None:
        yield Finding(step, State.WRONG, error, import_remedy(machine, error, "dpctl"))
        return
    text = f"dpctl {found['version']} shows {', '.join(found['devices']) or 'no device'}"
    if any(device.startswith("level_zero:") for device in found["devices"]):
        yield Finding(step, State.OK, text)
    else:
        none = ", and no Level Zero device" if found["devices"] else ""
        yield Finding(step, State.WRONG, text + none, show_devices(machine))


def show_devices(machine: Machine) -> str | None:
    """Return the command after which SYCL has a device: that for zeusm's runtime, or that for a variable which hides devices."""
    _, error = ask(machine, RUNTIME)
    return variables.named(machine, error) or variables.unset(machine, variables.HIDING)


def import_remedy(machine: Machine, error: str, package: str) -> str | None:
    """Return the command that mends the import of a package; of other errors the cause is not its installation."""
    cannot_import = error.startswith(("ImportError", "ModuleNotFoundError"))
    reinstall = f"pip install --force-reinstall {package}" if cannot_import else None
    return linker.remedy(machine, error) or machine.import_remedy(error) or reinstall


def find_kernels(machine: Machine) -> Iterator[Finding]:
    """Run a kernel of dpnp's."""
    step = "kernels"
    if importlib.util.find_spec("dpnp") is None:
        yield not_installed(machine, step, "dpnp")
        return
    found, error = ask(machine, KERNEL)
    if found is None and OLD_LIBRARY.search(error):
        yield Finding(step, State.ABSENT, "dpnp needs a newer libstdc++, as dpctl does")
        return
    if found is None:
        if NO_DEVICE.search(error):
            remedy = show_devices(machine)
        else:
            remedy = opencl_remedy(machine, error) or import_remedy(machine, error, "dpnp")
        yield Finding(step, State.WRONG, error, remedy)
        return
    total, device = found
    state = State.OK if total == 499_500 else State.WRONG
    yield Finding(step, state, f"dpnp adds 1000 numbers on {device}: {total}")
