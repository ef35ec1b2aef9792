"""Builds an empty kernel on zeusm's runtime, by Level Zero alone; prints the build log if that fails.

It needs no package besides zeusm, so it tests that the extra `cpu` brings a compiler of kernels.
"""

import ctypes
import sys

import zeusm
from zeusm._bench.spirv import empty_module


class ContextDesc(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint)]


class ModuleDesc(ctypes.Structure):
    _fields_ = [
        ("stype", ctypes.c_uint),
        ("next", ctypes.c_void_p),
        ("format", ctypes.c_uint),
        ("size", ctypes.c_size_t),
        ("input", ctypes.c_char_p),
        ("flags", ctypes.c_char_p),
        ("constants", ctypes.c_void_p),
    ]


def main() -> int:
    library = ctypes.CDLL(str(zeusm.runtime().path))
    one = ctypes.c_uint(1)
    driver, device, context, module, log = (ctypes.c_void_p() for _ in range(5))

    def call(name: str, *arguments: object) -> None:
        result = getattr(library, name)(*arguments)
        if result:
            raise SystemExit(f"{name}: {result:#x}")

    call("zeInit", 0)
    call("zeDriverGet", ctypes.byref(one), ctypes.byref(driver))
    call("zeDeviceGet", driver, ctypes.byref(one), ctypes.byref(device))
    context_desc = ContextDesc(0xD)
    call("zeContextCreate", driver, ctypes.byref(context_desc), ctypes.byref(context))
    code = empty_module()
    description = ModuleDesc(0x1B, None, 0, len(code), code, None, None)
    places = (ctypes.byref(description), ctypes.byref(module), ctypes.byref(log))
    result = library.zeModuleCreate(context, device, *places)
    if result == 0:
        print("a kernel was built")
        return 0
    size = ctypes.c_size_t()
    library.zeModuleBuildLogGetString(log, ctypes.byref(size), None)
    text = ctypes.create_string_buffer(size.value)
    library.zeModuleBuildLogGetString(log, ctypes.byref(size), text)
    print(f"zeModuleCreate: {result:#x}: {text.value.decode()}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
