"""A kernel that does nothing, as SPIR-V."""

import struct

NAME = "empty"


def empty_module() -> bytes:
    """The SPIR-V of `kernel void empty() {}`."""
    words = [0x07230203, 0x00010000, 0, 5, 0]  # Magic, version 1.0, generator, bound, schema.

    def instruction(code: int, *operands: int) -> None:
        words.append((len(operands) + 1) << 16 | code)
        words.extend(operands)

    instruction(17, 4)  # OpCapability Addresses
    instruction(17, 6)  # OpCapability Kernel
    instruction(14, 2, 2)  # OpMemoryModel Physical64 OpenCL
    instruction(15, 6, 3, *struct.unpack("<2I", NAME.encode().ljust(8, b"\0")))  # OpEntryPoint
    instruction(19, 1)  # %1 = OpTypeVoid
    instruction(33, 2, 1)  # %2 = OpTypeFunction %1
    instruction(54, 1, 3, 0, 2)  # %3 = OpFunction %1 None %2
    instruction(248, 4)  # %4 = OpLabel
    instruction(253)  # OpReturn
    instruction(56)  # OpFunctionEnd
    return struct.pack(f"<{len(words)}I", *words)
