"""The OpenCL platform of the CPU runtime, by which libraries compile OpenCL C for its GPU."""

import sys
from ctypes import (
    CDLL,
    POINTER,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
    c_ulong,
    c_void_p,
    create_string_buffer,
)
from pathlib import Path

import pytest
import zeusm.memory

# isort: split
import dpctl

pytestmark = pytest.mark.skipif(
    dpctl.__version__.startswith("0.17"),
    reason="Intel's OpenCL of 2024 compiles oneMKL's kernels wrongly",
)
LOADER = Path(sys.prefix, "lib", "libOpenCL.so.1")
ALL, GPU = c_ulong(0xFFFFFFFF), c_ulong(4)
NOT_FOUND, BUILD_FAILURE = -1, -11
PLATFORM_NAME, DEVICE_NAME, BUILD_LOG = 0x902, 0x102B, 0x1183
BINARY_SIZES, BINARIES = 0x1165, 0x1166


@pytest.fixture(scope="module")
def opencl():
    zeusm.memory.MemoryUSMShared(1)
    assert dpctl.get_devices()
    library = CDLL(LOADER)
    for name in ("clCreateContext", "clCreateProgramWithSource", "clCreateBuffer"):
        getattr(library, name).restype = c_void_p
    return library


def text(query, *arguments):
    size = c_size_t()
    assert query(*arguments, 0, None, byref(size)) == 0
    place = create_string_buffer(size.value)
    assert query(*arguments, c_size_t(size.value), place, None) == 0
    return place.value.decode()


@pytest.fixture(scope="module")
def platform(opencl):
    count = c_uint()
    assert opencl.clGetPlatformIDs(0, None, byref(count)) == 0
    platforms = (c_void_p * count.value)()
    assert opencl.clGetPlatformIDs(count, platforms, None) == 0
    [ours] = [
        platform
        for platform in map(c_void_p, platforms)
        if "zeusm" in text(opencl.clGetPlatformInfo, platform, PLATFORM_NAME)
    ]
    return ours


@pytest.fixture(scope="module")
def device(opencl, platform):
    device = c_void_p()
    found = opencl.clGetDeviceIDs(platform, GPU, 1, byref(device), None)
    assert found == 0
    return device


@pytest.fixture(scope="module")
def build(opencl, device):
    context = c_void_p(opencl.clCreateContext(None, 1, byref(device), None, None, None))

    def build(source, options):
        code = c_int()
        strings, lengths = (c_char_p * 2)(source, b" // ignored"), (c_size_t * 2)(0, 3)
        program = opencl.clCreateProgramWithSource(context, 2, strings, lengths, byref(code))
        assert code.value == 0
        program = c_void_p(program)
        return program, opencl.clBuildProgram(program, 1, byref(device), options, None, None)

    yield build
    assert opencl.clCreateBuffer(context, c_ulong(0), c_size_t(64), None, None) is None
    assert opencl.clReleaseContext(context) == 0


def test_only_those_who_ask_for_gpus_get_the_device(opencl, platform, device):
    assert opencl.clGetDeviceIDs(platform, ALL, 0, None, byref(c_uint())) == NOT_FOUND
    names = [device.name.strip() for device in dpctl.get_devices("level_zero", "gpu")]
    assert text(opencl.clGetDeviceInfo, device, DEVICE_NAME) in names


def test_a_program_becomes_a_native_module(opencl, build):
    source = b"kernel void scale(global double *x) { x[get_global_id(0)] *= FACTOR; }"
    program, code = build(source, b"-DFACTOR=2")
    assert code == 0
    size = c_size_t()
    assert opencl.clGetProgramInfo(program, BINARY_SIZES, c_size_t(8), byref(size), None) == 0
    binary = create_string_buffer(size.value)
    place = POINTER(type(binary))(binary)
    assert opencl.clGetProgramInfo(program, BINARIES, c_size_t(8), byref(place), None) == 0
    assert binary.raw.startswith(b"zeusm-cpu code")
    assert opencl.clRetainProgram(program) == opencl.clReleaseProgram(program) == 0
    assert opencl.clReleaseProgram(program) == 0


def test_an_error_is_in_the_log(opencl, device, build):
    program, code = build(b"kernel void wrong(global int *x) { *x = missing; }", b"")
    assert code == BUILD_FAILURE
    log = text(opencl.clGetProgramBuildInfo, program, device, BUILD_LOG)
    assert "undeclared identifier 'missing'" in log
