"""Differences between zeusm and dpctl: each row of docs/dpctl.md, tested on both packages."""

import array
import ctypes
import pickle
import sys
import weakref

import dpctl
import dpctl.memory
import numpy as np
import pytest
import zeusm
import zeusm.memory
from test_buffer import SIMPLE, Buffer, get_buffer, release_buffer

N = 4096


class Described:
    """Memory whose interface has some fields replaced."""

    def __init__(self, memory, **fields):
        self.memory, self.fields = memory, fields

    @property
    def __sycl_usm_array_interface__(self):
        return self.memory.__sycl_usm_array_interface__ | self.fields


def test_zero_bytes(memory_class, dpctl_class):
    with pytest.raises(ValueError, match="positive"):
        dpctl_class(0)
    assert memory_class(0)._pointer == 0


@pytest.fixture
def other_context():
    device = dpctl.SyclDevice("level_zero:gpu")
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


class TestAlignment:
    def test_a_negative_one(self, memory_class, dpctl_class):
        assert dpctl_class(N, alignment=-64).nbytes == N
        with pytest.raises(ValueError, match="-64"):
            memory_class(N, alignment=-64)

    def test_no_power_of_two(self, memory_class, dpctl_class):
        with pytest.raises(dpctl.memory.USMAllocationError, match=r"^USM allocation failed$"):
            dpctl_class(N, alignment=48)
        with pytest.raises(ValueError, match="power of two.*48"):
            memory_class(N, alignment=48)

    def test_more_than_there_can_be(self, memory_class, dpctl_class):
        assert dpctl_class(N, alignment=2**40)._pointer % 2**40 != 0
        with pytest.raises(ValueError, match=f"at most [0-9]+ bytes.*{2**40}"):
            memory_class(N, alignment=2**40)


class TestExtent:
    """dpctl's object has a size beyond its allocation, so the tests access it in new processes only."""

    @pytest.mark.parametrize(
        ("fields", "claimed", "told"),
        [
            ({"shape": (2**40,)}, 2**40, str(2**40)),
            ({"offset": N - 1}, N, str(N - 1)),
            ({"shape": (2**32, 2**32)}, 1, str(2**32)),
            ({"shape": (3, 2**62)}, 1, str(2**62)),
            ({"shape": (2**61,), "typestr": "<f8"}, 0, str(2**61)),
            ({"shape": (2**32 + 1, 2**32)}, 2**32, str(2**32 + 1)),
            ({"shape": (2**60, 5), "typestr": "<f4"}, 2**62, str(2**60)),
        ],
        ids=repr,
    )
    def test_a_dictionary_that_promises_too_much(
        self, memory_class, dpctl_class, fields, claimed, told
    ):
        theirs = dpctl_class(N)
        assert dpctl.memory.as_usm_memory(Described(theirs, **fields)).nbytes == claimed
        with pytest.raises(ValueError, match=told):
            zeusm.memory.as_usm_memory(Described(memory_class(N), **fields))

    PROGRAM = """
import zeusm  # Imported first for its runtime.
import {package}.memory as package
import numpy

class Described:
    def __init__(self, memory, **fields):
        self.memory, self.fields = memory, fields

    @property
    def __sycl_usm_array_interface__(self):
        return self.memory.__sycl_usm_array_interface__ | self.fields

memory, freed = package.MemoryUSMShared(4096), package.MemoryUSMShared(64)
host = numpy.zeros(4096, "u1")
context = memory.sycl_context._get_capsule()
fields = {fields}
del freed
try:
    memoryview(package.as_usm_memory(Described(memory, **fields)))[-1]
except ValueError as error:
    print(error)
"""

    @pytest.mark.parametrize(
        "fields",
        [
            "dict(shape=(2**40,))",
            "dict(data=(host.ctypes.data, True), syclobj=context)",
            "dict(data=(freed._pointer, True), shape=(64,), syclobj=context)",
        ],
        ids=["far end", "host pointer", "freed pointer"],
    )
    def test_where_dpctl_ends_the_process(self, fresh, fields):
        fresh(self.PROGRAM.format(package="dpctl", fields=fields), crashes=True)
        told = fresh(self.PROGRAM.format(package="zeusm", fields=fields)).stdout
        assert "malformed" in told or "is not a USM allocation" in told


def test_more_than_there_is_to_copy(fresh, usm_type):
    """zeusm rejects a 64-byte allocation that is described as 4096 bytes, so no copy can exceed it.
    test_driver.py tests copies that fail in the driver."""
    fresh(
        f"""
        import zeusm.memory, dpctl.memory

        class Described:
            def __init__(self, memory):
                self.memory = memory

            @property
            def __sycl_usm_array_interface__(self):
                return self.memory.__sycl_usm_array_interface__ | {{"shape": (4096,)}}

        small = dpctl.memory.MemoryUSM{usm_type.title()}(64)
        small.memset(3)
        theirs = dpctl.memory.as_usm_memory(Described(small))
        host = bytearray(b"\\xff" * 4096)
        theirs.copy_to_host(host)
        theirs.copy_from_host(b"\\1" * 4096)
        # Nothing was copied, and no error was raised.
        assert host == b"\\xff" * 4096 and bytes(small) == b"\\3" * 64
        for owner in small, zeusm.memory.MemoryUSM{usm_type.title()}(64):
            for take in (
                zeusm.memory.as_usm_memory,
                zeusm.memory.MemoryUSM{usm_type.title()},
                zeusm.memory.MemoryUSMShared(4096).copy_from_device,
            ):
                try:
                    take(Described(owner))
                except ValueError as error:
                    assert "4096" in str(error), error
                else:
                    raise AssertionError("the wrong size was accepted")
        """,
        # SYCL's pool would place small allocations side by side, and the copy would reach a neighbour.
        env={"UR_L0_DISABLE_USM_ALLOCATOR": "1", "SYCL_PI_LEVEL_ZERO_DISABLE_USM_ALLOCATOR": "1"},
    )


BUFFERS = [
    b"",
    array.array("d", [1.0, 2.0]),
    np.arange(6, dtype="u1").reshape(2, 3),
    np.arange(3, dtype="f8"),
]


class TestHostBuffers:
    @pytest.mark.parametrize("source", BUFFERS, ids=lambda source: type(source).__name__)
    def test_from_the_host(self, memory_class, dpctl_class, source):
        with pytest.raises((ValueError, IndexError), match="[Bb]uffer"):
            dpctl_class(N).copy_from_host(source)
        ours = memory_class(N)
        ours.copy_from_host(source)
        content = memoryview(source).tobytes()
        assert bytes(ours)[: len(content)] == content

    @pytest.mark.parametrize("shape", [(8,), (2, 2, 2)])
    def test_to_the_host(self, memory_class, dpctl_class, shape):
        destination = np.zeros(shape)
        with pytest.raises(ValueError, match="Buffer"):
            dpctl_class(64).copy_to_host(destination)
        ours = memory_class(64)
        ours.copy_from_host(np.arange(8, dtype="f8"))
        assert ours.copy_to_host(destination).tobytes() == bytes(ours)


@pytest.mark.parametrize(("value", "sets"), [(256, 0), (300, 44)])
def test_memset(memory_class, dpctl_class, value, sets):
    theirs = dpctl_class(N)
    theirs.memset(value)
    assert bytes(theirs) == bytes([sets]) * N
    ours = memory_class(N)
    ours.memset(1)
    with pytest.raises(ValueError, match=str(value)):
        ours.memset(value)
    assert bytes(ours) == b"\1" * N


def test_read_only(host_class):
    """True means read-only, as dpctl documents it. dpctl's objects drop the flag."""

    def keeps(package, flag):
        memory = getattr(package, host_class.__name__)(N)
        view = package.as_usm_memory(Described(memory, data=(memory._pointer, flag)))
        return memoryview(view).readonly

    assert [keeps(dpctl.memory, flag) for flag in (True, False)] == [False, False]
    assert [keeps(zeusm.memory, flag) for flag in (True, False)] == [True, False]


def test_read_only_is_kept_everywhere(memory_class, usm_type):
    class ReadOnly:
        """An exporter of memory that is marked read-only."""

        def __init__(self, memory):
            self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | {
                "data": (memory._pointer, True),
                "syclobj": memory.sycl_context,
            }

    memory = memory_class(N)
    view = zeusm.memory.as_usm_memory(ReadOnly(memory))
    array = view.view("u1", N)
    for one in view, view[1:], memory_class(view), array, zeusm.from_dlpack(array):
        assert one.__sycl_usm_array_interface__["data"][1] is True
        capsule = one.__dlpack__(max_version=(1, 0))
        assert zeusm.from_dlpack(Exporter(capsule, one)).readonly
        with pytest.raises(BufferError, match="read-only"):
            one.__dlpack__()
        with pytest.raises(ValueError, match="read-only"):
            one.copy_from_host(np.zeros(one.nbytes, "u1"))
    if usm_type != "device":
        assert memoryview(view).readonly
        assert not np.asarray(array).flags.writeable
        assert array.__array_interface__["data"][1] is True
    copy = memory_class(view, copy=True)
    copy.memset(1)  # A copy is a new allocation, which is writable.


class Exporter:
    """An exporter of a given capsule, on the device of an array."""

    def __init__(self, capsule, array):
        self.capsule, self.array = capsule, array

    def __dlpack__(self, **keywords):
        return self.capsule

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class TestCopy:
    def test_copy_is_a_copy(self, memory_class, dpctl_class):
        theirs = dpctl_class(N)
        assert dpctl_class(theirs, copy=True)._pointer == theirs._pointer
        ours = memory_class(N)
        ours.memset(5)
        copy = memory_class(ours, copy=True)
        assert copy._pointer != ours._pointer
        assert bytes(copy) == bytes(ours)
        assert copy.reference_obj is None

    def test_a_queue_is_not_ignored(self, memory_class, dpctl_class, other_context):
        theirs = dpctl_class(N)
        for copy in False, True:
            ignored = dpctl_class(theirs, queue=other_context, copy=copy)
            assert ignored.sycl_context == theirs.sycl_context != other_context.sycl_context
        same_context = dpctl.SyclQueue(theirs.sycl_context, theirs.sycl_device)
        assert dpctl_class(theirs, queue=same_context).sycl_queue != same_context
        ours = memory_class(N)
        with pytest.raises(ValueError, match="queue"):
            memory_class(ours, queue=other_context)
        copy = memory_class(ours, queue=other_context, copy=True)
        assert copy.sycl_queue == other_context
        assert memory_class(ours, queue=same_context).sycl_queue == same_context


def test_buffer(host_class):
    for shape_comes_along, memory in (
        (True, getattr(dpctl.memory, host_class.__name__)(N)),
        (False, host_class(N)),
    ):
        buffer = Buffer()
        get_buffer(memory, buffer, SIMPLE)
        assert bool(buffer.shape) == shape_comes_along
        release_buffer(buffer)


def test_interface(memory_class, dpctl_class):
    theirs = dpctl_class(N).__sycl_usm_array_interface__
    ours = memory_class(N).__sycl_usm_array_interface__
    assert (theirs["data"][1], ours["data"][1]) == (True, False)
    assert isinstance(theirs["syclobj"], dpctl.SyclQueue)
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    assert is_valid(ours["syclobj"], b"SyclContextRef")


def test_allocation_error(memory_class, dpctl_class, usm_type):
    with pytest.raises(dpctl.memory.USMAllocationError, match=r"^USM allocation failed$"):
        dpctl_class(2**62)
    with pytest.raises(
        zeusm.memory.USMAllocationError, match=rf"(?s){usm_type}.*more than the memory"
    ):
        memory_class(2**62)
    assert issubclass(zeusm.memory.USMAllocationError, MemoryError)


def test_weak_references(memory_class, dpctl_class):
    with pytest.raises(TypeError, match="weak reference"):
        weakref.ref(dpctl_class(N))
    ours = memory_class(N)
    watched = weakref.ref(ours)
    assert watched() is ours
    del ours
    assert watched() is None


def test_a_constructor_that_is_set(memory_class, dpctl_class, monkeypatch):
    def init(self, nbytes):
        raise LookupError(nbytes)

    with pytest.raises(TypeError, match="immutable"):
        dpctl_class.__init__ = init
    monkeypatch.setattr(memory_class, "__init__", init)
    if (
        ".cp" in zeusm._zeusm.__file__
    ):  # Not with the stable ABI, which has no slot for the shorter way past it.
        assert memory_class(N).nbytes == N
    with pytest.raises(LookupError):
        type("Own", (memory_class,), {})(N)


def test_a_class_that_is_changed(memory_class, dpctl_class, monkeypatch):
    with pytest.raises(TypeError, match="immutable"):
        dpctl_class.unit = "byte"
    monkeypatch.setattr(memory_class, "unit", "byte", raising=False)
    ours = memory_class(N)
    assert ours.unit == "byte"
    with pytest.raises(TypeError, match="__class__"):
        dpctl_class(N).__class__ = dpctl.memory._memory._Memory
    kind = ours.get_usm_type()
    ours.__class__ = zeusm.memory.MemoryUSMHost
    assert ours.get_usm_type() == kind


def test_device_memory_beside_an_array(memory_class, dpctl_class):
    array = np.zeros(2, "u1")
    theirs, ours = dpctl_class(2), memory_class(2)
    if ours.get_usm_type() != "device":
        assert (ours == array).shape == (theirs == array).shape == (2,)
        return
    assert (theirs == array).tolist() == [False, False]
    with pytest.raises(TypeError, match="accessed by the host"):
        assert ours == array


def test_close_and_with(memory_class, dpctl_class):
    assert not {"close", "__enter__", "__getitem__"} & set(dir(dpctl_class(N)))
    with memory_class(N) as ours:
        assert ours[1:3].nbytes == 2
    assert ours.closed


def test_size_in_python(memory_class, dpctl_class):
    for kind in dpctl_class, memory_class:
        assert 1 << 20 < sys.getsizeof(kind(1 << 20)) < (1 << 20) + 1000


def test_pickling(memory_class, dpctl_class):
    assert len(dpctl_class(N, alignment=1024).__reduce__()[1]) == 2  # Bytes and kind.
    _, (_, content, alignment, device, kind) = memory_class(N, alignment=1024).__reduce_ex__(2)
    assert (len(content), alignment, kind) == (N, 1024, memory_class(1).get_usm_type())
    assert dpctl.SyclDevice(device) == memory_class(1).sycl_device


def test_out_of_band_pickles(host_class):
    """dpctl's buffer is a NumPy copy and has to be writable; zeusm exports the memory in place."""
    for package, in_place in (dpctl.memory, False), (zeusm.memory, True):
        memory = getattr(package, host_class.__name__)(N)
        buffers = []
        data = pickle.dumps(memory, 5, buffer_callback=buffers.append)
        (buffer,) = buffers
        address = np.frombuffer(buffer.raw(), "u1").ctypes.data
        assert (address == memory._pointer) == in_place
        read_only = [bytes(buffer.raw())]
        if in_place:
            assert bytes(pickle.loads(data, buffers=read_only)) == bytes(memory)
        else:
            with pytest.raises(ValueError, match="read-only"):
                pickle.loads(data, buffers=read_only)


def test_copies_between_contexts(fresh):
    """dpctl stages such a copy in a host array of the full size."""
    fresh(
        """
        import zeusm.memory, dpctl.memory, dpctl

        def figure(name):
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))

        def growth(package):
            device = dpctl.SyclDevice("level_zero:gpu")
            other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
            x = package.MemoryUSMDevice(64 << 20)
            y = package.MemoryUSMDevice(64 << 20, queue=other)
            x.memset(1)
            y.memset(2)
            before = figure("VmRSS")
            with open("/proc/self/clear_refs", "w") as reset:
                reset.write("5")  # Resets the peak.
            y.copy_from_device(x)
            peak = figure("VmHWM")
            assert y.copy_to_host()[-1] == 1
            return peak - before

        assert growth(dpctl.memory) > 60 << 20
        assert growth(zeusm.memory) < 8 << 20
        """
    )


@pytest.mark.parametrize(
    ("package", "refused"), [("dpctl", []), ("zeusm", ["copy_to_host", "__reduce__"])]
)
def test_a_finalizer_at_the_exit(fresh, package, refused):
    told = fresh(
        f"""
        import zeusm, {package}.memory as memory
        from os import write

        class Shared(memory.MemoryUSMShared):
            def __del__(self, write=write, Exception=Exception, print=print):
                calls = [
                    ("copy_to_host", ()), ("__reduce__", ()), ("tobytes", ()), ("copy_to_host", (bytearray(8),)),
                ]
                for name, arguments in calls:
                    try:
                        getattr(self, name)(*arguments)
                    except Exception as error:
                        assert type(error).__name__ == "ImportError", error
                        write(1, name.encode() + b" ")
                write(1, b"end")

        shared = Shared(8)
        """
    )
    assert told.stdout.split() == [*refused, "end"]


def test_nothing_is_printed(fresh):
    told = fresh(
        """
        import zeusm, zeusm.memory as zm

        class Liar:
            __sycl_usm_array_interface__ = dict(
                data=(5, True), shape=(1,), typestr="|u1", version=1, syclobj="level_zero:gpu"
            )

        def failures():
            yield lambda: zm.MemoryUSMDevice(2**62)
            yield lambda: zm.MemoryUSMDevice(1, alignment=3)
            yield lambda: zm.as_usm_memory(Liar())
            yield lambda: zm.IPCMemoryHandle.open(b"nothing")
            yield lambda: zm.MemoryUSMShared(4).copy_from_host(b"12345")
            yield lambda: zeusm.pointer_attributes(5)

        for failure in failures():
            try:
                failure()
            except Exception:
                continue
            raise SystemExit("nothing was raised")
        """
    )
    assert told.stdout == told.stderr == ""
