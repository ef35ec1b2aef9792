"""The exit of the interpreter."""

import sys

import pytest


def test_queues_are_released(fresh):
    """zeusm caches the queues that it was given. A SYCL context that is alive after the exit keeps its kernels, which the
    driver may no longer know when SYCL releases them."""
    result = fresh(
        """
        import atexit
        import weakref

        alive = []
        atexit.register(lambda: print([queue() is not None for queue in alive]))
        atexit.register(lambda: use())  # Runs after zeusm's function.

        import dpctl
        import zeusm.memory

        class Queue(dpctl.SyclQueue):
            "A queue that can be referred to weakly."

        def use():
            queue = Queue()
            zeusm.memory.MemoryUSMDevice(64, queue=queue).memset()
            alive.append(weakref.ref(queue))

        use()
        assert alive[0]() is not None
        atexit.register(use)  # Runs before zeusm's function.
        """
    )
    assert result.stdout == "[False, False, False]\n"


COPIES = {
    "to the host": "array.copy_to_host()",
    "of every second element": "array[::2].copy_to_host()",
    "from the host": "array.copy_from_host(host)",
    "an assignment": "array[...] = host",
    "a number": "array[...] = 1.0",
    "a new array": "zeusm.asarray(host, usm_type='shared')",
}


@pytest.mark.once
@pytest.mark.parametrize("copy", COPIES)
def test_daemon_threads_copy_with_numpy(fresh, copy):
    """NumPy releases the GIL itself. Before Python 3.14 the exit ends a thread that acquires it again, which unwinds its stack."""
    for _ in range(3):
        fresh(f"""
            import threading, time
            import numpy as np
            import zeusm

            array = zeusm.empty((4 << 20) // 8, usm_type="shared")
            host = np.ones(array.shape)

            def work():
                while True:
                    {COPIES[copy]}

            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.2)
        """)


CALLS = {
    "a property": "zm.as_usm_memory(Exporter())",
    "an array of dpnp": "zeusm.asarray(dpnp_array)",
    "__dlpack__": "zeusm.from_dlpack(Exporter())",
    "an iterator": "memory.memset_async(1, depends=events())",
    "a function": "structures.dtype",
    "an event loop": "asyncio.run(awaits())",
    "a finalizer": "zm.as_usm_memory(Finalized())",
    "a weak reference": "drops()",
}


@pytest.mark.once
@pytest.mark.parametrize("call", CALLS)
def test_daemon_threads_call_python_code(fresh, call):
    """The exit ended a thread in Python code that zeusm had called, and Rust aborted the process."""
    prepare = ""
    if "dpnp" in CALLS[call]:
        pytest.importorskip("dpnp")  # The wheel is tested without it, too.
        prepare = "import dpnp; dpnp_array = dpnp.ones(8)"
    for _ in range(3):
        fresh(f"""
            import asyncio, sys, threading, time, weakref
            import numpy as np
            import zeusm
            import zeusm.memory as zm

            # A daemon thread that prints an error during the exit may end the process by an error of CPython.
            threading.excepthook = lambda error: None
            sys.setswitchinterval(1e-6)
            memory, array = zm.MemoryUSMShared(64), zeusm.asarray(np.ones(8))
            event = memory.memset_async(1)
            {prepare}
            structures = zeusm.empty(4, np.dtype([("a", "i4"), ("b", "f8", (2,))]))

            class Exporter:
                @property
                def __sycl_usm_array_interface__(self):
                    return sum(range(20)) and memory.__sycl_usm_array_interface__

                def __dlpack__(self, **keywords):
                    return sum(range(20)) and array.__dlpack__(**keywords)

                def __dlpack_device__(self):
                    return sum(range(20)) and array.__dlpack_device__()

            class Finalized(Exporter):
                def __del__(self):
                    sum(1 for _ in range(200))

            def drops():
                memory = zm.MemoryUSMShared(64)
                reference = weakref.ref(memory, lambda _: sum(1 for _ in range(200)))
                del memory

            def events():
                for _ in range(20):
                    yield event

            async def awaits():
                while True:
                    await memory.memset_async(1)

            def work():
                while True:
                    {CALLS[call]}

            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.2)
        """)


DROPS = {
    "a deallocation": "zm.as_usm_memory(Ends())",
    "close": "zm.as_usm_memory(Ends()).close()",
    "a callback of a pool": "pool.set_failure_callback(Ends()); pool.set_failure_callback(None)",
    "a weak reference": "drops()",
    "the garbage collector": "cycle(); gc.enable(); memory.memset_async(1)",
}


@pytest.mark.parametrize("drop", DROPS)
def test_a_thread_ends_in_what_zeusm_drops(fresh, drop):
    """The exit ends a thread by `pthread_exit`, and so does this program, in the finalizer that a call of zeusm runs."""
    if drop == "the garbage collector" and sys.version_info >= (3, 12):
        pytest.skip("from Python 3.12 on, the collector runs between instructions of any thread")
    fresh(f"""
        import ctypes, gc, sys, threading, time, weakref
        import zeusm.memory as zm

        memory, pool, ended = zm.MemoryUSMShared(64), zm.MemoryPool("shared"), threading.Lock()
        main = threading.get_ident()
        gc.disable()
        gc.set_threshold(1)
        # A thread is switched only where it blocks, so that the main thread collects nothing while the other one works.
        sys.setswitchinterval(1000)

        def end(*_):
            assert threading.get_ident() != main
            ended.release()
            ctypes.CDLL(None).pthread_exit(None)

        class Ends:
            __sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__
            __call__ = __del__ = end

        def drops():
            memory = zm.MemoryUSMShared(64)
            reference = weakref.ref(memory, end)
            del memory

        def cycle():
            ends = Ends()
            ends.itself = ends

        def blocks():
            return ended.acquire(True, 60)

        def work():
            while sys._current_frames()[main].f_code is not blocks.__code__:
                time.sleep(0.001)
            {DROPS[drop]}

        ended.acquire()
        threading.Thread(target=work, daemon=True).start()
        assert blocks()
        time.sleep(0.2)
    """)


def test_the_exit_may_join_a_thread_that_copies(fresh):
    """As that of `multiprocessing`, whose function is registered before zeusm is imported."""
    result = fresh("""
        import atexit, threading

        leave = threading.Event()

        def work():
            leave.wait()
            print(array.copy_to_host()[0])

        def stop():
            leave.set()
            thread.join()

        atexit.register(stop)

        import zeusm

        array = zeusm.asarray([1.5], usm_type="shared")
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
    """)
    assert result.stdout == "1.5\n"


class TestFinalizers:
    """`__del__` of objects that live until the modules are cleared, when Python imports nothing any more."""

    def test_memory_is_allocated_for_the_first_time(self, fresh):
        result = fresh("""
            import zeusm.memory

            class Owner:
                def __del__(self, memory=zeusm.memory, print=print):
                    print(memory.MemoryUSMShared(64).nbytes)

            owner = Owner()
        """)
        assert result.stdout == "64\n", result

    def test_memory_is_read(self, fresh):
        result = fresh("""
            import zeusm.memory

            class Owner:
                def __init__(self):
                    self.memory = zeusm.memory.MemoryUSMShared(64)
                    self.memory.memset(3)
                    self.memory.copy_to_host()

                def __del__(self, print=print):
                    print(self.memory.copy_to_host().tolist())

            owner = Owner()
        """)
        assert result.stdout == f"{[3] * 64}\n", result

    def test_a_snapshot_is_taken(self, fresh):
        result = fresh("""
            import zeusm.memory

            zeusm.memory.record_history()

            class Owner:
                def __del__(self, snapshot=zeusm.memory.snapshot, print=print):
                    print(snapshot()["process"]["argv"])

            owner = Owner()
        """)
        assert result.stdout == "[]\n", result
