"""The first driver of zeusm's runtime, by Level Zero alone, which needs no package besides zeusm."""

import ctypes

import zeusm


class Driver:
    """The driver, and functions of its library."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(zeusm.runtime().path))
        self.handle = ctypes.c_void_p()
        one = ctypes.c_uint(1)
        self.call("zeInit", 0)
        self.call("zeDriverGet", ctypes.byref(one), ctypes.byref(self.handle))

    def call(self, name: str, *arguments: object) -> None:
        """Call a function, which must succeed."""
        result = getattr(self.library, name)(*arguments)
        if result:
            raise SystemExit(f"{name}: {result:#x}")

    def module_cache(self) -> str | None:
        """Return what the CPU runtime says of the modules that it keeps on disk; None with another runtime."""
        address = ctypes.c_void_p()
        name = b"zeusmDriverDescribeModuleCache"
        find = self.library.zeDriverGetExtensionFunctionAddress
        if find(self.handle, name, ctypes.byref(address)):
            return None
        signature = ctypes.CFUNCTYPE(
            ctypes.c_uint, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_char_p
        )
        size = ctypes.c_size_t(4096)
        text = ctypes.create_string_buffer(size.value)
        result = signature(address.value or 0)(self.handle, ctypes.byref(size), text)
        return None if result else text.value.decode()
