"""The functions of `zeusm.torch`, called as PyTorch calls them: by a C++ library, from threads without the GIL."""

import shutil
import subprocess
import textwrap

import pytest

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not shutil.which("c++"), reason="it compiles a program in C++"),
]

SOURCE = r"""
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using Allocate = void *(*)(size_t, int, void *);
using Free = void (*)(void *, size_t, int, void *);

// Each thread frees what the one before it has allocated, on another queue. There are `2 * count * threads` calls in a round.
extern "C" int rounds(Allocate allocate, Free release, int threads, int rounds, int count, void *queue, void *other)
{
    std::vector<std::vector<void *>> all(threads);
    auto each = [&](auto work) {
        std::vector<std::thread> running;
        for (int thread = 0; thread < threads; ++thread)
            running.emplace_back(work, thread);
        for (auto &thread : running)
            thread.join();
    };
    int wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        each([&](int thread) {
            for (int i = 0; i < count; ++i)
                all[thread].push_back(allocate(512 << (i % 4), 0, queue));
        });
        for (auto &pointers : all)
            for (void *pointer : pointers)
                wrong += pointer == nullptr;
        each([&](int thread) {
            auto &pointers = all[(thread + 1) % threads];
            for (int i = 0; i < count; ++i)
                release(pointers[i], 512 << (i % 4), 0, other);
            pointers.clear();
        });
    }
    return wrong;
}

// Starts threads that allocate and free until the process ends, and waits until each has done so.
extern "C" void keep_on(Allocate allocate, Free release, int threads, void *queue)
{
    static std::atomic<int> begun;
    int wanted = begun + threads;
    for (int thread = 0; thread < threads; ++thread)
        std::thread([=] {
            for (long done = 0;; ++done) {
                release(allocate(4096, 0, queue), 4096, 0, queue);
                begun += done == 100;
            }
        }).detach();
    while (begun < wanted)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

extern "C" int refused(Allocate allocate, size_t size, int device, char *message, size_t room)
{
    try {
        allocate(size, device, nullptr);
        return 0;
    } catch (const std::runtime_error &error) {
        std::snprintf(message, room, "%s", error.what());
        return 1;
    }
}
"""

# A module with what zeusm uses of PyTorch's.
TORCH = """
import ctypes, os, sys, types

class XPUPluggableAllocator:
    def __init__(self, path, allocate, free):
        library = ctypes.CDLL(path)
        self.functions = tuple(
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in (allocate, free)
        )

memory = types.SimpleNamespace(
    XPUPluggableAllocator=XPUPluggableAllocator,
    change_current_allocator=lambda allocator: setattr(memory, "current", allocator),
)
sys.modules["torch"] = types.SimpleNamespace(xpu=types.SimpleNamespace(memory=memory))
stub = ctypes.CDLL(os.environ["STUB"])
P, I = ctypes.c_void_p, ctypes.c_int
stub.rounds.argtypes = [P, P, I, I, I, P, P]
stub.keep_on.argtypes = [P, P, I, P]
stub.refused.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]

def functions():
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    first, second = memory.current.functions
    return allocate(first), free(second)

def refused(size, device=0):
    message = ctypes.create_string_buffer(1000)
    assert stub.refused(memory.current.functions[0], size, device, message, 1000)
    return message.value.decode()

import zeusm.memory, zeusm.torch
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch")
    (folder / "stub.cpp").write_text(SOURCE)
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "stub.cpp", "-o", "stub.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "stub.so"


@pytest.fixture
def run(fresh, library):
    return lambda program: fresh(TORCH + textwrap.dedent(program), env={"STUB": str(library)})


# The rest of a program in which memory was freed on queues: it goes back to the pool when they are idle.
COMES_BACK = """
    import time
    end = time.monotonic() + 60
    while pool.used_bytes() and time.monotonic() < end:
        time.sleep(0.01)
    assert pool.used_bytes() == 0
"""


def test_threads_allocate_and_free(run):
    """A million calls from four threads; the frees are on other threads than the allocations, and on another queue."""
    run(
        """
    import dpctl
    pool = zeusm.memory.MemoryPool("device")
    zeusm.torch.use(pool)
    queue, other = (dpctl.SyclQueue("level_zero:gpu", property="in_order") for _ in range(2))
    for addresses in (None, None), (queue.addressof_ref(), other.addressof_ref()):
        assert stub.rounds(*memory.current.functions, 4, 125, 500, *addresses) == 0
    assert pool.statistics().allocations == 500_000
    """
        + COMES_BACK
        + "    assert pool.free_all_blocks() > 0"
    )


def test_a_failure_is_an_exception_with_the_reason(run):
    run("""
    pool = zeusm.memory.MemoryPool("device", limit=1 << 20)
    zeusm.torch.use(pool)
    assert "1048576" in refused(1 << 21)
    assert "no pool for xpu:1" in refused(64, device=1)
    assert functions()[0](0, 0, None) is None
    try:
        zeusm.torch.use()
    except TypeError as error:
        assert "pool" in str(error)
    else:
        raise AssertionError
    try:
        zeusm.torch.use(pool)
    except RuntimeError as error:
        assert "once" in str(error)
    else:
        raise AssertionError
    """)


def test_a_history_has_it(run):
    run("""
    import zeusm.memory as zm
    zeusm.torch.use(zm.MemoryPool("device"))
    allocate, free = functions()
    with zm.record_history() as history:
        pointer = allocate(4096, 0, None)
        blocks = history.snapshot()["blocks"]
        free(pointer, 4096, 0, None)
    assert blocks["size"][blocks["address"].index(pointer)] == 4096
    """)


def test_memory_is_kept_until_the_queue_is_idle(run):
    """The queue of the free, which need not be that of the allocation."""
    run(
        """
    import dpctl, dpnp
    pool = zeusm.memory.MemoryPool("device")
    zeusm.torch.use(pool)
    allocate, free = functions()
    queue, other = (dpctl.SyclQueue("level_zero:gpu", property="in_order") for _ in range(2))
    pointer = allocate(1 << 20, 0, other.addressof_ref())
    large = dpnp.ones(4_000_000, sycl_queue=queue)
    for _ in range(20):
        large += 1
    free(pointer, 1 << 20, 0, queue.addressof_ref())
    """
        + COMES_BACK
        + "    assert queue.submit_barrier().execution_status == dpctl.event_status_type.complete"
    )


def test_the_process_exits_while_threads_allocate_and_free(run):
    run("""
    import dpctl
    zeusm.torch.use(zeusm.memory.MemoryPool("device"))
    queue = dpctl.SyclQueue("level_zero:gpu", property="in_order")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(queue))  # PyTorch deletes none either.
    for address in None, queue.addressof_ref():
        stub.keep_on(*memory.current.functions, 4, address)
    """)


def test_the_child_of_a_fork_leaves_memory_alone(run):
    run("""
    pool = zeusm.memory.MemoryPool("device")
    zeusm.torch.use(pool)
    allocate, free = functions()
    pointer = allocate(4096, 0, None)
    child = os.fork()
    if not child:
        free(pointer, 4096, 0, None)
        own = allocate(4096, 0, None)
        free(own, 4096, 0, None)
        os._exit(0 if own else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert pool.used_bytes() == 4096
    """)  # The process exits with memory in use.
