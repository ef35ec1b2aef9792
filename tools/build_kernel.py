"""Builds an empty kernel on zeusm's runtime, by Level Zero alone; prints the build log if that fails.

It needs no package besides zeusm, so it tests that the extra `cpu` brings a compiler of kernels.
"""

import ctypes
import struct
import sys

import zeusm


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


def instruction(opcode: int, *operands: int) -> list[int]:
    return [(1 + len(operands)) << 16 | opcode, *operands]


def empty_kernel() -> bytes:
    """SPIR-V of a kernel `nop` without parameters, for OpenCL with 64-bit addresses."""
    void, function_type, function, label = 1, 2, 3, 4
    (name,) = struct.unpack("<I", b"nop\0")
    words = [0x0723_0203, 0x0001_0000, 0, 5, 0]
    words += instruction(17, 4) + instruction(17, 6)  # OpCapability Addresses, Kernel
    words += instruction(14, 2, 2)  # OpMemoryModel Physical64 OpenCL
    words += instruction(15, 6, function, name)  # OpEntryPoint Kernel
    words += instruction(19, void) + instruction(33, function_type, void)
    words += instruction(54, void, function, 0, function_type)  # OpFunction
    words += instruction(248, label) + instruction(253) + instruction(56)
    return struct.pack(f"<{len(words)}I", *words)


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
    code = empty_kernel()
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
