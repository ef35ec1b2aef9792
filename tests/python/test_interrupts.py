"""KeyboardInterrupt and other unrelated exceptions propagate unchanged from Python code that provides an argument."""

import ctypes
import gc
import numbers
import signal
import subprocess
import sys
import textwrap
import time
import weakref

import pytest
import zeusm
import zeusm.memory as zm

N = 64
PASSING = [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError]


@pytest.fixture(params=PASSING)
def error(request):
    return request.param


def raising(error):
    """An object that raises the error at each access."""

    def fail(*_, **__):
        raise error("passes")

    class Raising:
        __index__ = __int__ = __iter__ = __len__ = __getitem__ = __lt__ = fail
        _get_capsule = __dlpack__ = fail

        def __dlpack_device__(self):
            return 1, 0

        @property
        def __sycl_usm_array_interface__(self):
            raise error("passes")

    numbers.Integral.register(Raising)
    return Raising()


class Sequence:
    """A sequence whose items are all the given object."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.item

    def __iter__(self):
        return iter([self.item])


def described(**fields):
    memory = zm.MemoryUSMShared(N)

    class Described:
        __sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | fields

    return Described()


class Capsule:
    def __init__(self, bad):
        self._get_capsule = bad._get_capsule


READ = {
    "size": lambda bad: zm.MemoryUSMShared(bad),
    "alignment": lambda bad: zm.MemoryUSMShared(N, alignment=bad),
    "copy": lambda bad: zm.MemoryUSMShared(zm.MemoryUSMShared(N), copy=bad),
    "queue": lambda bad: zm.MemoryUSMShared(N, queue=Capsule(bad)),
    "syclobj": lambda bad: zm.as_usm_memory(described(syclobj=Capsule(bad))),
    "interface": lambda bad: zm.as_usm_memory(bad),
    "shape of a dictionary": lambda bad: zm.as_usm_memory(described(shape=Sequence(bad))),
    "shape that is none": lambda bad: zm.as_usm_memory(described(shape=bad)),
    "strides of a dictionary": lambda bad: zm.as_usm_memory(described(strides=Sequence(bad))),
    "offset of a dictionary": lambda bad: zm.as_usm_memory(described(offset=bad)),
    "data": lambda bad: zm.as_usm_memory(described(data=(bad, False))),
    "data that is no pair": lambda bad: zm.as_usm_memory(described(data=bad)),
    "descr": lambda bad: zm.as_usm_memory(described(descr=[("x", "|u1", bad)])),
    "pool": lambda bad: zm.MemoryPool("shared", limit=bad),
    "memset": lambda bad: zm.MemoryUSMShared(N).memset(bad),
    "shape": lambda bad: zeusm.empty(bad),
    "item of a shape": lambda bad: zeusm.empty(Sequence(bad)),
    "index": lambda bad: zeusm.empty(3)[bad],
    "depends": lambda bad: zm.MemoryUSMShared(N).memset_async(1, depends=bad),
    "tensor": lambda bad: zeusm.from_dlpack(bad),
    "device": lambda bad: zeusm.from_dlpack(zeusm.empty(3), device=(bad, 0)),
}


@pytest.mark.parametrize("way", READ)
def test_errors_that_pass(error, way):
    with pytest.raises(error, match="passes"):
        READ[way](raising(error))


@pytest.mark.parametrize("way", ["malloc", "constructor"])
def test_errors_that_pass_in_a_callback(error, way):
    pool = zm.MemoryPool("shared", limit=1 << 22)
    kept = pool.malloc(1 << 21)

    def callback(nbytes):
        raise error("passes")

    pool.set_failure_callback(callback)
    ways = {"malloc": pool.malloc, "constructor": lambda size: zm.MemoryUSMShared(size, pool=pool)}
    with pytest.raises(error, match="passes") as raised:
        ways[way](1 << 22)
    assert raised.type is error
    kept.close()


def test_other_errors_of_a_callback_are_the_cause():
    pool = zm.MemoryPool("shared", limit=1 << 22)
    kept = pool.malloc(1 << 21)
    pool.set_failure_callback(lambda nbytes: 1 / 0)
    with pytest.raises(zm.USMAllocationError) as raised:
        pool.malloc(1 << 22)
    kept.close()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


@pytest.mark.once
def test_control_c_ends_a_copy_behind_queued_work():
    program = """
import signal
import sys
import time
import zeusm.memory as zm
# A process that a shell started in the background ignores the signal, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
large, m = zm.MemoryUSMDevice(256 << 20), zm.MemoryUSMShared(1 << 20)
def seconds():
    started = time.monotonic()
    large.memset_async(1).wait()
    return time.monotonic() - started
# The shortest of several, as a delay of this process would make the queued work too short.
for _ in range(int(int(sys.argv[1]) / min(seconds() for _ in range(6))) + 1):
    end = large.memset_async(1)
print("ready", flush=True)
try:
    m.copy_to_host()
except KeyboardInterrupt:
    print("interrupted", end.is_complete, flush=True)
"""

    def is_interrupted(seconds):
        command = [sys.executable, "-c", program, str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.1)
            child.send_signal(signal.SIGINT)
            line = child.stdout.readline()
            assert child.wait(timeout=120) == 0
        return line == "interrupted False\n"

    # More work where other programs delay the signal until the work is complete.
    assert any(is_interrupted(seconds) for seconds in (3, 12, 36))


def test_control_c_ends_the_submission_of_many_regions():
    """Each pair of rows of an array with gaps in five dimensions is a region of its own."""
    program = """
import signal
import sys
import numpy as np
import zeusm
signal.signal(signal.SIGALRM, signal.default_int_handler)
source = zeusm.empty((1024, 512, 2, 2, 2), "u1", usm_type="device")
target = zeusm.empty((2048, 1024, 4, 4, 4), "u1", usm_type="device")[::2, ::2, ::2, ::2, ::2]
source.base.memset(1)
target.base.memset(0)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    target[...] = source
except KeyboardInterrupt:
    print("interrupted", target.copy_to_host().all())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "interrupted False\n", run


# --- leaks -------------------------------------------------------------------------------------------


def test_a_pool_and_its_callback_are_collected():
    """The callback refers to the pool, as a callback that frees memory may do."""

    class Callback:
        def __init__(self, pool):
            self.pool, self.ballast = pool, bytearray(1 << 10)

        def __call__(self, nbytes):
            return False

    pools, callbacks = [], []
    for _ in range(200):
        pool = zm.MemoryPool("shared")
        callback = Callback(pool)
        pool.set_failure_callback(callback)
        pools.append(weakref.ref(pool))
        callbacks.append(weakref.ref(callback))
        memory = pool.malloc(64)
    del pool, callback, memory
    gc.collect()
    assert not any(pool() for pool in pools)
    assert not any(callback() for callback in callbacks)


class Heap(ctypes.Structure):
    """`struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
        ]
    ] + [("keepcost", ctypes.c_size_t)]


def heap_in_use():
    gc.collect()
    told = ctypes.CDLL(None).mallinfo2
    told.restype = Heap
    return told().uordblks


@pytest.mark.parametrize("package", ["zeusm", "dpctl"])
def test_importing_a_tensor_leaves_nothing(package):
    """An import avoids the barrier that dpctl's exporter submits for other queues than its own, and that leaks 64 bytes."""
    if package == "zeusm":
        array = zeusm.empty(10, dtype="int32", usm_type="shared")
    else:
        array = pytest.importorskip("dpnp").zeros(10, dtype="int32", usm_type="shared")
    if not hasattr(array, "__dlpack__"):
        array = array.get_array()
    calls = 2000
    for _ in range(calls):
        zeusm.from_dlpack(array)
    before = heap_in_use()
    for _ in range(calls):
        zeusm.from_dlpack(array)
    assert heap_in_use() - before < 8 * calls


def test_the_callback_of_a_default_pool_outlives_its_handle():
    asked = []
    zm.get_pool("host").set_failure_callback(lambda nbytes: asked.append(nbytes))
    gc.collect()
    try:
        with pytest.raises(zm.USMAllocationError):
            zm.MemoryUSMHost(1 << 60)
    finally:
        zm.get_pool("host").set_failure_callback(None)
    assert asked == [1 << 60]


def test_memory_that_outlives_its_pool():
    pool = zm.MemoryPool("shared")
    pool.set_failure_callback(lambda nbytes: False)
    memory = pool.malloc(N)
    del pool
    gc.collect()
    memory.memset(1)
    assert memory.tobytes() == b"\x01" * N


def test_an_interrupt_at_the_import_of_dpctl_passes(fresh):
    """The exception propagates, and the next use imports dpctl."""
    fresh("""
        import sys, zeusm.memory as zm

        class Interrupt:
            def find_spec(self, name, *_):
                if name == "dpctl":
                    raise KeyboardInterrupt

        assert "dpctl" not in sys.modules
        interrupt = Interrupt()
        sys.meta_path.insert(0, interrupt)
        try:
            zm.MemoryUSMShared(10)
        except KeyboardInterrupt:
            sys.meta_path.remove(interrupt)
        else:
            raise AssertionError("the interrupt was lost")
        assert zm.MemoryUSMShared(10).sycl_device.has_aspect_gpu
    """)


def test_an_exception_of_a_handler_during_a_wait_for_sycl_propagates(fresh):
    """Two queues are waited for, one after the other. Python calls the handler when it executes code of its own between them."""
    fresh("""
        import signal
        import dpctl, dpctl.memory
        import zeusm.memory as zm

        def handle(*_):
            raise TimeoutError

        queues = [dpctl.SyclQueue("level_zero:gpu") for _ in range(2)]
        size = 64 << 20
        busy = [[dpctl.memory.MemoryUSMDevice(size, queue=queue) for _ in range(2)] for queue in queues]
        target, source = [zm.MemoryUSMDevice(1024, queue=queue) for queue in queues]
        target._pointer, source._pointer
        signal.signal(signal.SIGALRM, handle)
        # The device has the work of the source's queue first.
        for queue, (one, other) in zip(reversed(queues), reversed(busy)):
            for _ in range(40):
                queue.memcpy_async(one, other, size)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            target.copy_from_device(source)
        except TimeoutError:
            pass
        else:
            raise AssertionError("the exception was lost")
        for queue in queues:
            queue.wait()
    """)


@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
def test_an_exception_while_an_argument_is_described_propagates(error):
    """As that of a signal's handler, which Python calls in the object's code."""

    class Shown:
        def __repr__(self):
            raise error

    with pytest.raises(error):
        zm.MemoryUSMShared(N, queue=Shown())
    with pytest.raises(error):
        zm.MemoryUSMShared(N).get_usm_type(Shown())


def check_that_no_exception_is_lost(fresh, before, statement, times):
    """A timer's handler raises so many exceptions while `statement` is repeated, and the program sees each of them."""
    fresh(f"""
{textwrap.dedent(before)}
import signal, sys

class Timeout(Exception):
    pass

def handle(*_):
    global fired
    fired += 1
    raise Timeout

{statement}  # The first time imports modules, in which Python loses exceptions of its own.
lost = []
sys.unraisablehook = lambda unraisable: lost.append(unraisable.exc_value)
signal.signal(signal.SIGALRM, handle)
fired = raised = 0
while fired < {times}:
    before = fired
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0001 + fired * 0.0045 / {times})
        while fired == before:
            {statement}
    except Timeout:
        raised += 1
assert raised == fired and not lost, (raised, fired, lost)
""")


def test_no_exception_of_a_handler_is_lost_in_a_snapshot(fresh):
    """`str()` of a name would call the handlers of signals, and whoever wants a text has no place for their exceptions."""
    before = """
        import zeusm.memory as zm

        with zm.record_history() as history:
            for number in range(1000):
                names = {}
                code = f"def f{number}(zm):\\n return zm.MemoryUSMHost(8)"
                exec(compile(code, f"file{number}.py", "exec"), names)
                names[f"f{number}"](zm)
        """
    check_that_no_exception_is_lost(fresh, before, "history.snapshot()", 40)


@pytest.mark.parametrize(
    "statement",
    [
        "repr(statistics)",
        "repr(array)",
        "array._repr_html_()",
        "zeusm.empty(1, fields)",
        "zeusm.empty((three, three), queue=like)",
    ],
)
def test_no_exception_of_a_handler_is_lost_or_replaced(fresh, statement):
    """`str()` of a figure or of a shape calls the handlers of signals; so does NumPy when it lists the fields of a type, and
    Python in the caller's own code."""
    before = """
        import numpy, zeusm
        import zeusm.memory as zm

        statistics = zm.get_pool().statistics()
        array = zeusm.empty((2, 3), "f4")
        fields = numpy.dtype([(f"f{number}", "f4") for number in range(200)])

        class Three:
            def __index__(self):
                return sum(range(3))

        class Like:
            @property
            def sycl_queue(self):
                return array.sycl_queue

        three, like = Three(), Like()
        """
    check_that_no_exception_is_lost(fresh, before, statement, 200)
