"""Invalid sizes, alignments and queues raise dpctl's exception classes, with a message that names the cause."""

import ctypes
import fractions
import itertools
import numbers
import os
import signal
import sys
from typing import ClassVar
from unittest import mock

import dpctl
import numpy as np
import pytest
import zeusm
from conftest import WITHOUT_DPCTL
from zeusm.memory import USMAllocationError

N = 4096


def device_size():
    return dpctl.SyclDevice("level_zero:gpu").global_mem_size


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "told"),
    [
        ((-1,), {}, ValueError, "-1"),
        ((-(2**70),), {}, ValueError, str(-(2**70))),
        ((2**62,), {}, USMAllocationError, str(2**62)),
        ((2**63,), {}, (ValueError, USMAllocationError), str(2**63)),
        ((2**64,), {}, (ValueError, USMAllocationError), str(2**64)),
        ((2**70,), {}, (ValueError, USMAllocationError), str(2**70)),
        ((1.5,), {}, (TypeError, ValueError), "1.5|float"),
        (("4096",), {}, (TypeError, ValueError), "4096|str"),
        ((None,), {}, (TypeError, ValueError), "None"),
        ((), {}, TypeError, "argument"),
        ((N,), {"alignment": 3}, ValueError, "alignment.*3"),
        ((N,), {"alignment": -8}, ValueError, "alignment.*-8"),
        ((N,), {"alignment": 2**40}, (ValueError, USMAllocationError), str(2**40)),
        ((N,), {"alignment": 2**63}, (ValueError, USMAllocationError), str(2**63)),
        ((N,), {"alignment": 2**64}, (ValueError, USMAllocationError), str(2**64)),
        ((N,), {"alignment": 1.0}, TypeError, "(?i)alignment|float"),
        ((N,), {"alignment": "64"}, TypeError, "(?i)alignment|str"),
        ((N,), {"queue": 5}, TypeError, "queue.*int"),
        ((N,), {"queue": object()}, TypeError, "queue.*object"),
        ((N,), {"bananas": 1}, TypeError, "bananas"),
    ],
)
def test_constructor(memory_class, arguments, keywords, error, told):
    with pytest.raises(error, match=told):
        memory_class(*arguments, **keywords)


def test_more_than_the_device_has(memory_class, usm_type):
    size = 2 * device_size()
    with pytest.raises(USMAllocationError, match=rf"(?s)(?=.*{size})(?=.*{usm_type}).*ZE_"):
        memory_class(size)


def test_zero_bytes_are_a_null_pointer(memory_class):
    x = memory_class(0)
    assert (x._pointer, x.nbytes, len(x), bytes(x)) == (0, 0, 0, b"")
    x.memset(1)
    x.copy_from_host(b"")
    assert len(x.copy_to_host()) == 0


def test_a_used_capsule_is_no_queue(memory_class):
    capsule = dpctl.SyclQueue()._get_capsule()
    dpctl.SyclQueue(capsule)
    with pytest.raises((TypeError, ValueError), match="used_SyclQueueRef"):
        memory_class(N, queue=capsule)


def test_a_filter_string_without_a_device(memory_class):
    for filter_string in ("level_zero:gpu:99", "bananas", ""):
        with pytest.raises(ValueError, match=f"queue is '{filter_string}'"):
            memory_class(N, queue=filter_string)


def test_a_device_that_has_no_queue(memory_class, monkeypatch):
    """The argument is right: a failure of its device, which may be lost, is not a `ValueError`."""

    def fail(key):
        raise dpctl.SyclQueueCreationError("the device is lost")

    monkeypatch.setattr(dpctl, "get_device_cached_queue", fail)
    for device in ("level_zero:gpu", dpctl.SyclDevice("level_zero:gpu")):
        with pytest.raises(RuntimeError, match="the device is lost") as caught:
            memory_class(N, queue=device)
        assert isinstance(caught.value.__cause__, dpctl.SyclQueueCreationError)


def test_a_queue_of_another_backend(fresh, usm_type):
    """The message names both backends. The environment contains the OpenCL runtime."""
    icd = os.path.join(sys.prefix, "lib", "libintelocl.so")
    fresh(
        f"""
        import zeusm.memory
        import dpctl

        queue = dpctl.SyclQueue("opencl:cpu")
        for place in (queue, queue.sycl_context, queue.sycl_device):
            try:
                zeusm.memory.MemoryUSM{usm_type.title()}(64, queue=place)
            except ValueError as error:
                told = str(error).lower()
                assert "opencl" in told and "level" in told and "zero" in told, told
            else:
                raise AssertionError("an OpenCL queue was accepted")

        class Described:
            def __init__(self, syclobj):
                self.memory = zeusm.memory.MemoryUSM{usm_type.title()}(64)
                interface = self.memory.__sycl_usm_array_interface__
                self.__sycl_usm_array_interface__ = interface | {{"syclobj": syclobj}}

        capsules = queue._get_capsule(), queue.sycl_context._get_capsule()
        for syclobj in (queue, queue.sycl_context, "opencl:cpu", *capsules):
            try:
                zeusm.memory.as_usm_memory(Described(syclobj))
            except ValueError as error:
                told = str(error).lower()
                assert "syclobj" in told and "opencl" in told and "level" in told, told
            else:
                raise AssertionError("memory was found in an OpenCL context")
        """,
        env={"OCL_ICD_FILENAMES": icd, "OCL_ICD_VENDORS": icd},
    )


@pytest.mark.parametrize("number", [1 << 64, -(1 << 64)])
def test_an_offset_that_is_out_of_range(memory_class, number):
    with pytest.raises(ValueError, match=f"offset is {number}, which is out of range"):
        memory_class(8).view("uint8", 1, None, number)


@pytest.mark.parametrize("address", [-1, 1 << 64])
def test_an_address_that_is_out_of_range(address):
    with pytest.raises(ValueError, match=f"ptr is {address}, which is out of range"):
        zeusm.pointer_attributes(address)


def test_offsets_and_addresses_are_integers():
    with pytest.raises(TypeError, match="offset must be an integer, not 1.5"):
        zeusm.memory.MemoryUSMHost(8).view("uint8", 1, None, 1.5)
    with pytest.raises(TypeError, match="ptr must be an integer, not 1.5"):
        zeusm.pointer_attributes(1.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda bad: zeusm.memory.MemoryUSMShared(64, alignment=bad),
        lambda bad: zeusm.memory.MemoryPool("host", limit=bad),
        lambda bad: zeusm.memory.MemoryUSMShared(64).view("u1", offset=bad),
        lambda bad: zeusm.memory.MemoryUSMShared(64).__dlpack__(max_version=(bad, 0)),
        lambda bad: zeusm.memory.MemoryUSMShared(64).__dlpack__(dl_device=(bad, 0)),
        lambda bad: zeusm.memory.MemoryUSMShared(64).memset_async(1, depends=bad),
        lambda bad: zeusm.empty((3, bad)),
        lambda bad: zeusm.empty(3)[bad],
        lambda bad: zeusm.pointer_attributes(bad),
        lambda bad: zeusm.empty(3, queue=bad),
        lambda bad: zeusm.memory.MemoryUSMShared(64).get_usm_type(bad),
    ],
)
@pytest.mark.parametrize("error", [ZeroDivisionError, TimeoutError, TypeError, OverflowError])
def test_an_error_of_the_callers_own_code_propagates(call, error):
    """As that of a signal's handler, which Python calls in it."""

    class Bad:
        def __index__(self):
            raise error("mine")

        __iter__ = _get_capsule = __index__

    numbers.Integral.register(Bad)
    with pytest.raises(error, match="^mine") as raised:
        call(Bad())
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("error", [ZeroDivisionError, ValueError])
def test_an_error_of_a_property_sycl_queue_propagates(error):
    class Bad:
        @property
        def sycl_queue(self):
            raise error("mine")

    with pytest.raises(error, match="^mine$"):
        zeusm.empty(3, queue=Bad())


@pytest.fixture
def exporter():
    """An object whose buffer request raises the exception of the `error` attribute."""

    class Exporter:
        def __len__(self):
            raise self.error

    # The slots `bf_getbuffer` of the type, by `PyTypeObject.tp_as_buffer`, and a function of C with its error return. It
    # gets the object first, and ignores the other arguments.
    slots = ctypes.c_void_p.from_address(id(Exporter) + 160).value
    size = ctypes.cast(ctypes.pythonapi.PyObject_Size, ctypes.c_void_p).value
    ctypes.c_void_p.from_address(slots).value = size
    return Exporter()


@pytest.mark.skipif(WITHOUT_DPCTL, reason="a free-threaded Python has another layout of types")
@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), OSError("mine"), TypeError("mine")])
@pytest.mark.parametrize(
    "call",
    [
        lambda bad: zeusm.memory.MemoryUSMShared(8).copy_from_host(bad),
        lambda bad: zeusm.memory.MemoryUSMShared(8).copy_to_host(bad),
        lambda bad: zeusm.memory.MemoryUSMShared(8).copy_from_host_async(bad),
        lambda bad: zeusm.memory.MemoryUSMShared(8).copy_to_host_async(bad),
    ],
)
def test_an_exception_of_the_exporters_own_code_propagates(exporter, error, call):
    exporter.error = error
    with pytest.raises(type(error)) as raised:
        call(exporter)
    assert raised.value is error


@pytest.mark.skipif(WITHOUT_DPCTL, reason="a free-threaded Python has another layout of types")
def test_an_exporters_type_error_is_the_cause_of_advice(exporter):
    exporter.error = TypeError("mine")
    type(exporter).__sycl_usm_array_interface__ = {}
    with pytest.raises(TypeError, match="copy_from_device copies USM") as raised:
        zeusm.memory.MemoryUSMShared(8).copy_from_host(exporter)
    assert raised.value.__cause__ is exporter.error


@pytest.mark.skipif(WITHOUT_DPCTL, reason="a free-threaded Python has another layout of types")
@pytest.mark.parametrize("error", [ValueError("mine"), BufferError("mine")])
def test_an_exporter_refuses_a_request(exporter, error):
    exporter.error = error
    with pytest.raises(type(error), match="must be a C-contiguous buffer: mine") as raised:
        zeusm.memory.MemoryUSMShared(8).copy_from_host(exporter)
    assert raised.value.__cause__ is error


def test_an_error_of_the_callers_own_iterator_propagates():
    class Shape:
        def __iter__(self):
            raise RuntimeError("own")

    with pytest.raises(RuntimeError, match="own"):
        zeusm.empty(Shape())


def test_a_number_is_no_memory(memory_class):
    memory = memory_class(N)
    for call in zeusm.memory.as_usm_memory, memory.copy_from_device, memory.copy_to_device:
        with pytest.raises(ValueError, match="^int has no __sycl_usm_array_interface__$"):
            call(3)


def test_advice(fresh):
    """What the messages for mistakes name in the place of the call."""
    fresh(
        """
        import numpy as np, re
        import zeusm.memory as zm

        memory, device = zm.MemoryUSMShared(64), zm.MemoryUSMDevice(64)
        bytes_of_host = np.zeros(64, "u1")
        view = memoryview(memory)
        mistakes = [
            (lambda: memory.copy_from_host(device), "copy_from_device"),
            (lambda: memory.copy_to_host(device), "copy_to_device"),
            (lambda: memory.copy_from_device(bytes_of_host), "copy_from_host"),
            (lambda: zm.MemoryUSMShared(bytes_of_host), "copy_from_host.*asarray"),
            (lambda: memory.__setitem__(0, 1), r"memory\\[i:i\\+1\\] = "),
            (memory.close, r"arrays or operations use it \\(1 do\\): delete"),
        ]
        for mistake, advice in mistakes:
            try:
                mistake()
            except Exception as error:
                assert re.search(advice, str(error)), (advice, error)
            else:
                raise SystemExit(advice)
        """
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ZE_AFFINITY_MASK", "1"), ("ONEAPI_DEVICE_SELECTOR", "opencl:gpu")],
)
def test_variables_that_hide_all_devices_are_named(fresh, variable, value):
    environment = {"ZEUSM_CPU_DEVICES": "1+cpu", variable: value}
    count = "import zeusm, dpctl; print(dpctl.get_num_devices(backend='level_zero'))"
    if fresh(count, env=environment).stdout != "0\n":
        pytest.skip("SYCL 2024 lists Level Zero's CPU without a GPU")
    program = "import zeusm.memory as zm; zm.MemoryUSMShared(64).sycl_queue"
    told = fresh(program, env=environment, fails=True).stderr
    assert f'{variable}, now "{value}"' in told.splitlines()[-1]


# Each message has the argument.
UNPRINTABLE = {
    "size": lambda bad: zeusm.memory.MemoryUSMShared(bad),
    "alignment": lambda bad: zeusm.memory.MemoryUSMShared(64, alignment=bad),
    "offset": lambda bad: zeusm.memory.MemoryUSMShared(64).view("u1", offset=bad),
    "memset": lambda bad: zeusm.memory.MemoryUSMShared(64).memset(bad),
    "shape": lambda bad: zeusm.empty((3, bad)),
    "index": lambda bad: zeusm.empty(3)[bad],
    "address": lambda bad: zeusm.pointer_attributes(bad),
    "limit": lambda bad: zeusm.memory.MemoryPool("host", limit=bad),
    "version": lambda bad: zeusm.memory.MemoryUSMShared(64).__dlpack__(max_version=(bad, 0)),
    "device": lambda bad: zeusm.memory.MemoryUSMShared(64).__dlpack__(dl_device=(bad, 0)),
}


@pytest.mark.parametrize("name", UNPRINTABLE)
def test_an_integer_with_more_digits_than_python_converts(name):
    """Pytest reports an exception that is ignored in the message."""
    call = UNPRINTABLE[name]
    with pytest.raises((ValueError, IndexError, BufferError, USMAllocationError)) as raised:
        call(1 << 40_000)
    told = "unprintable tuple object" if name == "device" else "an integer of 40001 bits"
    assert f"<{told}>" in str(raised.value)


class Raised(Exception):
    """Of a signal's handler, as for a timeout, or of the argument's own code."""


@pytest.mark.parametrize("exception", [KeyboardInterrupt, Raised])
@pytest.mark.parametrize("name", ["offset", "shape", "index", "address", "version", "device"])
def test_an_exception_while_a_message_is_made_is_raised(name, exception):
    class Slow:
        def __repr__(self):
            raise exception

    with pytest.raises(exception):
        UNPRINTABLE[name](Slow())


def test_a_timeout_while_a_message_is_made_is_raised():
    """CPython looks for signals at each object of which it makes a text."""

    class Interrupting(list):
        def __repr__(self):
            signal.raise_signal(signal.SIGUSR1)
            return "slow"

    def handler(*_):
        raise Raised

    class Bad:
        __sycl_usm_array_interface__: ClassVar = {
            "data": (1, False),
            "shape": (Interrupting(),),
            "typestr": "|u1",
            "version": 1,
            "syclobj": "gpu",
        }

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Raised):
            zeusm.memory.as_usm_memory(Bad())
    finally:
        signal.signal(signal.SIGUSR1, before)


NUMBERS = [1e6, np.float64(1e6), np.float32(1e6), 1 + 0j, fractions.Fraction(8)]


@pytest.mark.parametrize("size", NUMBERS, ids=repr)
def test_a_size_is_an_int(memory_class, size):
    with pytest.raises(ValueError, match="a number of bytes must be an int"):
        memory_class(size)


@pytest.mark.parametrize(
    "call",
    [
        lambda copy: zeusm.asarray(np.ones(3), copy=copy),
        lambda copy: zeusm.from_dlpack(np.ones(3), copy=copy),
        lambda copy: zeusm.empty(3, usm_type="host").__array__(copy=copy),
        lambda copy: zeusm.empty(3).reshape(3, copy=copy),
        lambda copy: zeusm.empty(3).__dlpack__(copy=copy),
        lambda copy: zeusm.memory.MemoryUSMShared(zeusm.memory.MemoryUSMShared(8), copy=copy),
    ],
)
def test_copy_is_a_flag(call):
    for copy in True, 1, np.True_, np.int64(1):
        assert call(copy) is not None
    with pytest.raises(TypeError, match="^copy must be True, False or an integer, not 'maybe'"):
        call("maybe")


def test_a_flag_of_zero_is_false():
    shared = zeusm.asarray([1.0], usm_type="shared")
    assert zeusm.asarray(shared, copy=0)._pointer == shared._pointer
    with pytest.raises(ValueError, match="without a copy"):
        zeusm.asarray(np.ones(3), copy=0)


@pytest.mark.parametrize("name", ["cuda:0", "xpu", "level_zero:gpu:77"])
def test_a_string_that_is_no_filter_string(name):
    with pytest.raises(ValueError, match=f"'{name}'.*a filter string is like 'gpu'"):
        zeusm.empty(3, device=name)


def test_a_long_argument_is_shortened():
    with pytest.raises(TypeError) as raised:
        zeusm.empty("x" * 100_000)
    assert 1000 < len(str(raised.value)) < 1200
    assert str(raised.value).endswith("xxx...")


@pytest.mark.parametrize("endless", [itertools.count, lambda: range(1 << 40)])
@pytest.mark.parametrize(
    ("role", "call"),
    [
        ("shape", lambda many: zeusm.empty(many)),
        ("shape", lambda many: zeusm.empty(4).reshape(many)),
        ("shape", lambda many: zeusm.memory.MemoryUSMShared(64).view("u1", many)),
        ("strides", lambda many: zeusm.memory.MemoryUSMShared(64).view("u1", (4,), many)),
        ("axes", lambda many: zeusm.empty(4).transpose(many)),
    ],
)
def test_more_integers_than_an_array_can_have_dimensions(endless, role, call):
    with pytest.raises(ValueError, match=f"^{role} has more than 64 integers$"):
        call(endless())


MOCKED = {
    "queue": (lambda mock: zeusm.memory.MemoryUSMShared(8, queue=mock), "SyclQueue"),
    "context": (lambda mock: zeusm.memory.MemoryUSMShared(8).get_usm_type(mock), "SyclContext"),
    "device": (lambda mock: zeusm.empty(3, device=mock), "SyclDevice"),
    "event": (
        lambda mock: zeusm.memory.MemoryUSMShared(8).memset_async(1, depends=mock),
        "SyclEvent",
    ),
    "stream": (lambda mock: zeusm.memory.MemoryUSMShared(8).__dlpack__(stream=mock), "SyclQueue"),
}


@pytest.mark.parametrize("make", [mock.MagicMock, mock.Mock])
@pytest.mark.parametrize("role", MOCKED)
def test_a_mock_object_of_dpctls_classes_is_refused(role, make):
    """It claims the class, and its `addressof_ref` returns anything."""
    call, name = MOCKED[role]
    imitation = make(spec=getattr(dpctl, name))
    imitation.addressof_ref.return_value = 1
    assert isinstance(imitation, getattr(dpctl, name))
    with pytest.raises(TypeError):
        call(imitation)


def test_a_subclass_cannot_change_the_address_of_the_queue(memory_class):
    class Queue(dpctl.SyclQueue):
        def addressof_ref(self):
            return 64

    queue = Queue()
    assert memory_class(8, queue=queue).sycl_queue == queue


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: zeusm.memory.MemoryUSMHost(8).memset("a"), "val must be an integer, not 'a'"),
        (lambda: zeusm.memory.MemoryUSMHost(8).memset(1.5), "val must be an integer, not 1.5"),
        (
            lambda: zeusm.memory.MemoryPool("host").malloc("a"),
            "the number of bytes must be an integer, not str",
        ),
        (lambda: zeusm.memory.record_history(stacks=3), "while processing 'stacks'"),
        (lambda: zeusm.asarray([1], order="X"), "order must be 'C', 'F' or 'K', not \"X\""),
        (lambda: zeusm.empty(1, order="K"), "order must be 'C' or 'F', not \"K\""),
        (
            lambda: zeusm.asarray(zeusm.empty((2, 2)), order="F", copy=False),
            "in another order in memory; a copy is needed",
        ),
    ],
)
def test_the_argument_is_named(call, told):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    notes = getattr(raised.value, "__notes__", [])
    assert told in "\n".join([str(raised.value), *notes])
