"""CUDA memory for the tests: of the machine's driver if that has a device, else of a stand-in for libcuda."""

import ctypes
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import numpy as np

try:
    from numpy.lib.array_utils import byte_bounds
except ImportError:  # NumPy 1.
    from numpy import byte_bounds

SOURCE = Path(__file__).resolve().parents[1] / "support/cuda.c"
NAME = "libcuda.so.1"


def build(folder):
    """Compile the stand-in. A later `dlopen` of `libcuda.so.1` finds it by its name once it is loaded."""
    library = Path(folder) / NAME
    compiler = shlex.split(os.environ.get("CC", "cc"))
    options = ["-shared", "-fPIC", "-Wall", "-Werror", f"-Wl,-soname,{NAME}"]
    subprocess.run([*compiler, *options, SOURCE, "-o", library], check=True)
    return library


class Driver:
    def __init__(self):
        self.is_real = True
        try:
            self.library = ctypes.CDLL(NAME)
            count = ctypes.c_int()
            self.check("cuInit", 0)
            self.check("cuDeviceGetCount", ctypes.byref(count))
            context = ctypes.c_void_p()
            self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
            self.check("cuCtxPushCurrent_v2", context)
        except (OSError, AssertionError):
            self.is_real = False
            self.library = ctypes.CDLL(str(build(tempfile.mkdtemp())))
            self.library.stand_in_calls.restype = ctypes.c_char_p
            self.library.stand_in_produce.argtypes = [
                *[ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t]
            ]

    def check(self, function, *arguments):
        assert getattr(self.library, function)(*arguments) == 0, function

    def array(self, host, **more):
        """An array in memory of CUDA with the contents of a NumPy array, any gaps included."""
        return CudaArray(self, host, **more)

    def calls(self):
        """The calls of the stand-in since the last time."""
        found = self.library.stand_in_calls().decode().split()
        self.library.stand_in_forget()
        return found

    def is_clean(self):
        """Whether the stand-in has no objects of finished copies."""
        names = ("depth", "primary_users", "in_flight")
        return [getattr(self.library, f"stand_in_{name}")() for name in names] == [0, 0, 0]


class CudaArray:
    """An array with the interface only, and its memory."""

    def __init__(self, driver, host, alloc="cuMemAlloc_v2", **more):
        self.driver = driver
        self.host = host
        low, high = byte_bounds(host) if host.size else (0, 1)
        self.size = high - low
        base = ctypes.c_uint64()
        driver.check(alloc, ctypes.byref(base), ctypes.c_size_t(self.size))
        self.base = base.value
        if host.size:
            self.copy("cuMemcpyHtoD_v2", self.base, low)
        first = self.base + host.ctypes.data - low if host.size else 0
        self.__cuda_array_interface__ = {
            "shape": host.shape,
            "typestr": host.dtype.str,
            "data": (first, False),
            "strides": host.strides,
            "version": 3,
            "stream": None,
        } | more
        if host.dtype.names:
            self.__cuda_array_interface__["descr"] = host.dtype.descr

    def copy(self, function, to, source):
        to, source = ctypes.c_uint64(to), ctypes.c_uint64(source)
        self.driver.check(function, to, source, ctypes.c_size_t(self.size))

    def contents(self):
        """A NumPy array with the same strides and the present contents."""
        low = byte_bounds(self.host)[0]
        there = np.empty(self.size, "u1")
        self.copy("cuMemcpyDtoH_v2", there.ctypes.data, self.base)
        offset = self.host.ctypes.data - low
        return np.ndarray(self.host.shape, self.host.dtype, there, offset, self.host.strides)

    def __del__(self):
        self.driver.check("cuMemFree_v2", ctypes.c_uint64(self.base))
