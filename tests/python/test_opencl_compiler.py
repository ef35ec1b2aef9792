"""The OpenCL platform of the CPU runtime, by which libraries compile OpenCL C for its GPU."""

import sys
from ctypes import (
    CDLL,
    CFUNCTYPE,
    POINTER,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
    c_ulong,
    c_void_p,
    create_string_buffer,
    sizeof,
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
NOT_FOUND, BUILD_FAILURE, NO_PARTS, INVALID_VALUE, INVALID_DEVICE = -1, -11, -18, -30, -33
NOT_BUILT, BUILT, NO_BINARY, EXECUTABLE = -1, 0, 0, 4
PLATFORM_NAME, DEVICE_NAME, DEVICE_PLATFORM, PARENT = 0x902, 0x102B, 0x1031, 0x1042
CONTEXT_DEVICES, CONTEXT_PROPERTIES, CONTEXT_DEVICE_COUNT = 0x1081, 0x1082, 0x1083
PROGRAM_CONTEXT, DEVICE_COUNT, DEVICES, SOURCE = 0x1161, 0x1162, 0x1163, 0x1164
BINARY_SIZES, BINARIES = 0x1165, 0x1166
STATUS, OPTIONS, BUILD_LOG, BINARY_TYPE = 0x1181, 0x1182, 0x1183, 0x1184


@pytest.fixture(scope="module")
def opencl():
    zeusm.memory.MemoryUSMShared(1)
    assert dpctl.get_devices()
    library = CDLL(LOADER)
    for name in ("clCreateContext", "clCreateProgramWithSource", "clCreateBuffer"):
        getattr(library, name).restype = c_void_p
    return library


def number(query, *arguments, kind=c_void_p):
    place = kind()
    assert query(*arguments, c_size_t(sizeof(kind)), byref(place), None) == 0
    return place.value


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
def context(opencl, device):
    context = c_void_p(opencl.clCreateContext(None, 1, byref(device), None, None, None))
    yield context
    assert opencl.clCreateBuffer(context, c_ulong(0), c_size_t(64), None, None) is None
    assert opencl.clReleaseContext(context) == 0


@pytest.fixture(scope="module")
def build(opencl, device, context):
    def build(source, options):
        code = c_int()
        strings, lengths = (c_char_p * 2)(source, b" // ignored"), (c_size_t * 2)(0, 3)
        program = opencl.clCreateProgramWithSource(context, 2, strings, lengths, byref(code))
        assert code.value == 0
        program = c_void_p(program)
        return program, opencl.clBuildProgram(program, 1, byref(device), options, None, None)

    return build


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


def test_a_device_and_a_context_answer_queries(opencl, platform, device, context):
    assert number(opencl.clGetDeviceInfo, device, DEVICE_PLATFORM) == platform.value
    assert number(opencl.clGetDeviceInfo, device, PARENT) is None
    assert opencl.clCreateSubDevices(device, None, 0, None, None) == NO_PARTS
    assert number(opencl.clGetContextInfo, context, CONTEXT_DEVICES) == device.value
    assert number(opencl.clGetContextInfo, context, CONTEXT_DEVICE_COUNT, kind=c_uint) == 1
    assert text(opencl.clGetContextInfo, context, CONTEXT_PROPERTIES) == ""
    unknown = c_uint(0xFFFF)
    for query, of in [
        (opencl.clGetPlatformInfo, platform),
        (opencl.clGetDeviceInfo, device),
        (opencl.clGetContextInfo, context),
    ]:
        assert query(of, unknown, c_size_t(0), None, None) == INVALID_VALUE
    name = create_string_buffer(4)
    assert opencl.clGetDeviceInfo(device, DEVICE_NAME, c_size_t(4), name, None) == INVALID_VALUE
    assert name.raw == bytes(4)
    two, code = (c_void_p * 2)(device, device), c_int()
    assert opencl.clCreateContext(None, 2, two, None, None, byref(code)) is None
    assert code.value == INVALID_DEVICE


def test_a_program_answers_queries_before_its_build_and_after_it(opencl, device, context):
    def info(kind, of):
        return number(opencl.clGetProgramInfo, program, kind, kind=of)

    def build_info(kind):
        return number(opencl.clGetProgramBuildInfo, program, device, kind, kind=c_int)

    @CFUNCTYPE(None, c_void_p, c_void_p)
    def done(of, data):
        calls.append((of, data))

    calls, source = [], b"kernel void nothing() {}"
    program = opencl.clCreateProgramWithSource(context, 1, byref(c_char_p(source)), None, None)
    program = c_void_p(program)
    assert (build_info(STATUS), build_info(BINARY_TYPE)) == (NOT_BUILT, NO_BINARY)
    assert text(opencl.clGetProgramBuildInfo, program, device, OPTIONS) == ""
    assert info(BINARY_SIZES, c_size_t) == 0
    assert opencl.clBuildProgram(program, 0, None, None, done, c_void_p(7)) == 0
    assert calls == [(program.value, 7)]
    assert (build_info(STATUS), build_info(BINARY_TYPE)) == (BUILT, EXECUTABLE)
    assert text(opencl.clGetProgramBuildInfo, program, device, BUILD_LOG) == ""
    assert text(opencl.clGetProgramInfo, program, SOURCE) == source.decode()
    assert (info(DEVICE_COUNT, c_uint), info(DEVICES, c_void_p)) == (1, device.value)
    assert info(PROGRAM_CONTEXT, c_void_p) == context.value
    assert info(BINARY_SIZES, c_size_t) > 0
    assert info(BINARIES, c_void_p) is None  # No place for the only one.
    room = c_size_t()
    assert opencl.clGetProgramInfo(program, BINARIES, c_size_t(0), None, byref(room)) == 0
    assert room.value == sizeof(c_void_p)
    for query, *of in [(opencl.clGetProgramInfo,), (opencl.clGetProgramBuildInfo, device)]:
        assert query(program, *of, c_uint(0xFFFF), c_size_t(0), None, None) == INVALID_VALUE
    assert opencl.clReleaseProgram(program) == 0


def test_a_program_needs_a_source(opencl, context):
    code, nothing = c_int(), (c_char_p * 1)(None)
    for count, strings in [(0, byref(c_char_p(b"source"))), (1, None), (1, nothing)]:
        made = opencl.clCreateProgramWithSource(context, count, strings, None, byref(code))
        assert (made, code.value) == (None, INVALID_VALUE)
