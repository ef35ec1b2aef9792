"""Copies to and from the host: any contiguous buffer, completely or not at all."""

import array
import ctypes

import dpctl
import numpy as np
import pytest
import zeusm

N = 4096
PATTERN = bytes(i % 251 for i in range(N))


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"abc",
        bytearray(b"abc"),
        memoryview(b"abc"),
        array.array("d", [1.5, 2.5]),
        np.arange(12, dtype="<f8").reshape(3, 4),
        np.arange(12, dtype="<c16"),
        np.zeros((0, 5), "<i4"),
        np.zeros((), "<i8"),
        np.arange(10, dtype=">u2"),
        (ctypes.c_double * 3)(1, 2, 3),
        PATTERN,
    ],
    ids=lambda source: type(source).__name__,
)
def test_any_contiguous_buffer_comes_in(memory_class, source):
    wanted = memoryview(source).tobytes()
    x = memory_class(N)
    x.memset(255)
    x.copy_from_host(source)
    assert bytes(x) == wanted + b"\xff" * (N - len(wanted))


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (bytes(N + 1), ValueError),
        (np.zeros(N // 8 + 1), ValueError),
        (np.arange(64, dtype="u1")[::2], (ValueError, BufferError)),
        (np.zeros((4, 4), order="F")[:, ::2], (ValueError, BufferError)),
        ("text", TypeError),
        (5, TypeError),
        (None, TypeError),
        ([1, 2, 3], TypeError),
    ],
    ids=["bytes", "array", "strided", "strided 2D", "str", "int", "None", "list"],
)
def test_what_cannot_come_in_changes_nothing(memory_class, source, error):
    x = memory_class(N)
    x.copy_from_host(PATTERN)
    with pytest.raises(error):
        x.copy_from_host(source)
    assert bytes(x) == PATTERN


def test_out_to_the_host(memory_class):
    x = memory_class(N)
    x.copy_from_host(PATTERN)
    assert bytes(x.copy_to_host()) == PATTERN
    assert x.tobytes() == bytes(x) == PATTERN
    target = bytearray(b"\xff" * (N + 3))
    assert x.copy_to_host(target) is target
    assert target == PATTERN + b"\xff" * 3
    numbers = np.zeros((N // 8, 1))
    assert x.copy_to_host(numbers) is numbers
    assert numbers.tobytes() == PATTERN


def test_a_destination_that_is_too_small_stays_as_it_was(memory_class):
    target = bytearray(b"\xff" * (N - 1))
    with pytest.raises(ValueError, match=str(N)):
        memory_class(N).copy_to_host(target)
    assert target == b"\xff" * (N - 1)


def test_a_read_only_destination_stays_as_it_was(memory_class):
    target = bytes(N)
    with pytest.raises((ValueError, TypeError, BufferError)):
        memory_class(N).copy_to_host(target)
    assert target == b"\0" * N


def test_a_source_that_is_too_large_changes_nothing(memory_class):
    x, y = memory_class(N), memory_class(N + 1)
    x.copy_from_host(PATTERN)
    with pytest.raises(ValueError, match=str(N)):
        x.copy_from_device(y)
    assert bytes(x) == PATTERN


@pytest.mark.parametrize("value", [0, 1, 127, 128, 255])
def test_memset(memory_class, value):
    x = memory_class(N)
    x.memset(value)
    assert bytes(x) == bytes([value]) * N


@pytest.mark.parametrize(
    ("value", "error"),
    [(256, ValueError), (-1, ValueError), (2**70, ValueError), ("a", TypeError), (1.5, TypeError)],
)
def test_memset_takes_a_byte(memory_class, value, error):
    x = memory_class(N)
    x.copy_from_host(PATTERN)
    with pytest.raises(error):
        x.memset(value)
    assert bytes(x) == PATTERN


@pytest.mark.parametrize("syclobj", [..., 5, []])
def test_usm_type_of_something_else(memory_class, syclobj):
    with pytest.raises(TypeError):
        memory_class(N).get_usm_type(syclobj=syclobj)


# --- between contexts ------------------------------------------------------------------------------


def other_context():
    device = dpctl.SyclDevice("level_zero:gpu")
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


@pytest.mark.parametrize("size", [1, N, (4 << 20) + 1])
def test_every_byte_goes_to_another_context(memory_class, size):
    x = memory_class(size)
    y = memory_class(size, queue=other_context())
    content = np.arange(size, dtype="u8").view("u1")[:size].tobytes()
    x.copy_from_host(content)
    y.copy_from_device(x)
    assert y.tobytes() == content
    x.memset(0)
    x.copy_from_device(y)
    assert x.tobytes() == content
    assert memory_class(x, copy=True, queue=other_context()).tobytes() == content


def test_arrays_go_to_another_context(usm_type):
    source = np.arange(24, dtype="i4").reshape(2, 3, 4)
    array = zeusm.asarray(source, usm_type=usm_type)
    for key in np.s_[:], np.s_[1:], np.s_[:, ::2, ::-1], np.s_[..., 1]:
        for order in "C", "F":
            copy = zeusm.asarray(array[key], queue=other_context(), order=order)
            assert copy.sycl_context != array.sycl_context
            np.testing.assert_array_equal(copy.copy_to_host(), source[key])


def test_no_host_array_of_the_full_size_is_made(fresh):
    """Compares the peak of the resident memory with its size before and after the copy."""
    fresh("""
        import zeusm, zeusm.memory
        import dpctl

        def figure(name):
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))

        def peak_of(call):
            before = figure("VmRSS")
            with open("/proc/self/clear_refs", "w") as reset:
                reset.write("5")  # Resets the peak.
            call()
            return figure("VmHWM") - before

        device = dpctl.SyclDevice("level_zero:gpu")
        other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        size = 128 << 20
        x = zeusm.memory.MemoryUSMDevice(size)
        y = zeusm.memory.MemoryUSMDevice(size, queue=other)
        x.memset(1)
        y.memset(2)
        assert peak_of(lambda: b"x" * size) > size // 2  # The measurement detects a host array.
        assert peak_of(lambda: y.copy_from_device(x)) < 16 << 20
        assert peak_of(lambda: y.copy_from_device_async(x).wait()) < 16 << 20
        assert y[-1:].tobytes() == b"\1"
        array = x.view("u1", size)
        # The copy itself is one such array.
        assert peak_of(lambda: zeusm.asarray(array, queue=other)) < size + (16 << 20)
    """)


def test_a_source_stays_its_owners_alone(memory_class):
    """A copy does not export its operands, so they can be closed after it. A copy with a closed operand is rejected."""
    source, target = memory_class(64), memory_class(64)
    source.memset(7)
    target.copy_from_device(source)
    assert memory_class(source, copy=True).tobytes() == target.tobytes() == bytes([7]) * 64
    target.copy_from_device(target)
    assert target.tobytes() == bytes([7]) * 64
    source.close()
    with pytest.raises(ValueError, match="closed"):
        target.copy_from_device(source)
    with pytest.raises(ValueError, match="closed"):
        memory_class(source, copy=True)
    target.close()


# Copies between contexts return another result.
ANSWER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int answer, calls;

int zeCommandListAppendMemoryCopyFromContext(void *list, void *to, void *context, const void *from, size_t size,
                                             void *signal, unsigned count, void **waits)
{
    calls++;
    if (answer)
        return answer;
    return ((int (*)(void *, void *, void *, const void *, size_t, void *, unsigned, void **))dlsym(
        RTLD_NEXT, "zeCommandListAppendMemoryCopyFromContext"))(list, to, context, from, size, signal, count, waits);
}
"""


def test_a_direct_copy_that_fails_is_told_and_one_that_the_driver_lacks_goes_another_way(
    fresh, stand_in
):
    """Only an unsupported function selects the staged copy; other failures, such as a lost device, raise."""
    program = """
        import ctypes, os, zeusm, zeusm.memory as zm
        import dpctl

        library = ctypes.CDLL(os.environ["ZEUSM_RUNTIME"])
        answer, calls = (ctypes.c_int.in_dll(library, name) for name in ("answer", "calls"))
        device = dpctl.SyclDevice("level_zero:gpu")
        other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        x, y = zm.MemoryUSMDevice(1 << 20), zm.MemoryUSMDevice(1 << 20, queue=other)
        ways = y.copy_from_device, lambda x: y.copy_from_device_async(x).wait()

        def tell(code):
            return code - (1 << 32) if code >= 1 << 31 else code

        for number, code in enumerate([0, 0x78000002, 0x78000003]):  # UNSUPPORTED_VERSION, UNSUPPORTED_FEATURE
            answer.value = tell(code)
            for way in ways:
                x.memset(number + 1)
                y.memset(0)
                way(x)
                assert y.tobytes() == bytes([number + 1]) * (1 << 20)
        # The staged copy after a refused one asks again: one more for each of four.
        assert calls.value == 10, calls.value
        for code, name in {0x70000001: "DEVICE_LOST", 0x70000002: "OUT_OF_HOST_MEMORY",
                           0x70000003: "OUT_OF_DEVICE_MEMORY", 0x78000004: "INVALID_ARGUMENT"}.items():
            answer.value = tell(code)
            for way in ways:
                try:
                    way(x)
                except zeusm.LevelZeroError as error:
                    assert name in str(error) and str(1 << 20) in str(error), error
                else:
                    raise AssertionError(name)
        answer.value = 0
        x.memset(9)
        y.copy_from_device(x)
        assert y.tobytes() == bytes([9]) * (1 << 20)
    """
    # SYCL's contexts of all devices of a driver share one of Level Zero, so there are two devices.
    fresh(program, env={"ZEUSM_RUNTIME": str(stand_in(ANSWER)), "ZEUSM_CPU_DEVICES": "2"})


COPIES = {
    "assignment": lambda to, source: to.__setitem__(slice(None), source),
    "from": lambda to, source: to.copy_from_device(source),
    "to": lambda to, source: source.copy_to_device(to),
    "asynchronous": lambda to, source: to.copy_from_device_async(source).wait(),
}


@pytest.mark.parametrize("size", [101, 4762, (1 << 20) + 3])
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_overlapping_parts_of_memory(memory_class, copy, size):
    """A GPU copies the bytes in any order."""
    content = np.random.default_rng(1).integers(0, 256, size, "uint8").tobytes()
    for distance in (1, 64, size // 2, size - 1):
        for begin, end in ((0, distance), (distance, 0)):
            memory = memory_class(size)
            memory.copy_from_host(content)
            length = size - distance
            copy(memory[end : end + length], memory[begin : begin + length])
            expected = bytearray(content)
            expected[end : end + length] = content[begin : begin + length]
            assert memory.tobytes() == expected, (distance, begin)


def test_overlapping_parts_that_are_larger_than_the_staging_memory(memory_class):
    content = np.random.default_rng(1).integers(0, 256, (33 << 20) + 3, "uint8")
    memory = memory_class(content.nbytes)
    for distance in (1, 17 << 20):
        for end, begin in (
            (slice(distance, None), slice(-distance)),
            (slice(-distance), slice(distance, None)),
        ):
            memory.copy_from_host(content)
            memory[end].copy_from_device(memory[begin])
            expected = content.copy()
            expected[end] = content[begin]
            assert np.array_equal(np.frombuffer(memory.tobytes(), "uint8"), expected), (
                distance,
                end,
            )


def test_overlapping_parts_take_little_device_memory():
    size = 100 << 20
    memory = zeusm.memory.MemoryUSMDevice(size)
    pool = zeusm.memory.get_pool("device")
    used = pool.used_bytes()
    memory[1:].copy_from_device(memory[:-1])
    assert pool.used_bytes() - used <= 16 << 20
