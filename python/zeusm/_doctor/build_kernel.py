"""Builds an empty kernel on zeusm's runtime, by Level Zero alone: `python -m zeusm._doctor.build_kernel`.

It needs no package besides zeusm. It prints the library that built the kernel, or the build log and fails.
"""

import ctypes
import re
import sys
from pathlib import Path

import zeusm
from zeusm._bench.spirv import empty_module
from zeusm._doctor.level_zero import Driver

#: The OpenCL runtimes that zeusm's runtime opens, as files that the process has mapped.
OPENCL = re.compile(r"/\S*/lib(?:intelocl|OpenCL)\.so\S*")

#: `ZE_RESULT_ERROR_MODULE_BUILD_FAILURE`, whose reason is in the log.
BUILD_FAILURE = 0x7000_0004


class ContextDesc(ctypes.Structure):
    """`ze_context_desc_t`."""

    _fields_ = [("stype", ctypes.c_uint), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint)]


class ModuleDesc(ctypes.Structure):
    """`ze_module_desc_t`."""

    _fields_ = [
        ("stype", ctypes.c_uint),
        ("next", ctypes.c_void_p),
        ("format", ctypes.c_uint),
        ("size", ctypes.c_size_t),
        ("input", ctypes.c_char_p),
        ("flags", ctypes.c_char_p),
        ("constants", ctypes.c_void_p),
    ]


def build() -> str:
    """Build it, and return the name of the library."""
    driver = Driver()
    call, one = driver.call, ctypes.c_uint(1)
    device, context, module, log = (ctypes.c_void_p() for _ in range(4))
    call("zeDeviceGet", driver.handle, ctypes.byref(one), ctypes.byref(device))
    context_desc = ContextDesc(0xD)
    call("zeContextCreate", driver.handle, ctypes.byref(context_desc), ctypes.byref(context))
    code = empty_module()
    description = ModuleDesc(0x1B, None, 0, len(code), code, None, None)
    places = (ctypes.byref(description), ctypes.byref(module), ctypes.byref(log))
    result = driver.library.zeModuleCreate(context, device, *places)
    if result:
        size = ctypes.c_size_t()
        call("zeModuleBuildLogGetString", log, ctypes.byref(size), None)
        text = ctypes.create_string_buffer(size.value)
        call("zeModuleBuildLogGetString", log, ctypes.byref(size), text)
        if result == BUILD_FAILURE and text.value:
            raise SystemExit(text.value.decode())
        raise SystemExit(f"zeModuleCreate: {result:#x}: {text.value.decode()}")
    return opencl() or str(zeusm.runtime().path)


def opencl() -> str | None:
    """Return the OpenCL runtime that this process has loaded."""
    if sys.platform != "win32":
        found = OPENCL.search(Path("/proc/self/maps").read_text())
        return found and found[0]
    kernel32 = ctypes.WinDLL("kernel32")
    kernel32.GetModuleHandleW.restype = ctypes.c_void_p
    path = ctypes.create_unicode_buffer(1 << 15)
    for name in ("intelocl64.dll", "OpenCL.dll"):
        if module := kernel32.GetModuleHandleW(name):
            kernel32.GetModuleFileNameW(ctypes.c_void_p(module), path, len(path))
            return path.value
    return None


if __name__ == "__main__":
    sys.stdout.write(f"{build()}\n")
