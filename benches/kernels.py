"""The time of kernels on zeusm's CPU runtime, compared with OpenCL's CPU device in the same process."""

import opencl  # noqa: F401 (before SYCL)
import zeusm  # noqa: F401 (before SYCL)
from compare import compare
from zeusm._bench.spirv import empty_module

# isort: split
import dpctl
import dpctl.program
import dpnp

N = 10_000_000
SMALL = 1000
CHAIN = (100_000, N)
# OpenCL's workers spin for up to 20 ms after a kernel, which would slow down the other peer's round.
REST = 0.03
# On `opencl:cpu`, oneMKL adds floats on threads of OpenMP, which spin for 200 ms.
REST_OF_FLOATS = 0.25


def launches(queue):
    """The time of one empty kernel with a wait, and of ten empty kernels with one wait."""
    kernel = dpctl.program.create_program_from_spirv(queue, empty_module()).get_sycl_kernel("empty")

    def one():
        queue.submit(kernel, [], [1]).wait()

    def ten():
        # `submit` waits, and so does the drop of an event.
        events = [queue.submit_async(kernel, [], [1]) for _ in range(10)]
        queue.wait()
        del events

    return one, ten


def arrays(queue):
    """A vector addition and a reduction of float32."""
    x, y = (dpnp.full(N, value, dtype="f4", sycl_queue=queue) for value in (1, 2))
    result = dpnp.empty_like(x)
    queue.wait()

    def add():
        dpnp.add(x, y, out=result)
        queue.wait()

    def reduce():
        dpnp.sum(x)
        queue.wait()

    return add, reduce


def small(queue):
    """An addition of a few int32, waited for. dpnp also creates a host task, in which another thread waits for the kernel."""
    x = dpnp.ones(SMALL, dtype="i4", sycl_queue=queue)
    result = dpnp.empty_like(x)
    queue.wait()

    def add():
        dpnp.add(x, x, out=result)
        queue.wait()

    return add


def chain(queue, count):
    """Ten additions of int32, each to the result of the one before.

    For floats, dpnp calls oneMKL's vector functions, which run a kernel on a GPU and the host's threads on `opencl:cpu`.
    """
    one, *results = (dpnp.ones(count, dtype="i4", sycl_queue=queue) for _ in range(3))
    queue.wait()

    def ten():
        for _ in range(5):
            dpnp.add(results[0], one, out=results[1])
            dpnp.add(results[1], one, out=results[0])
        queue.wait()

    return ten


def main():
    # Only one of them has work in flight at a time: with both, Intel's OpenCL runtime may hang (docs/limits.md).
    queues = {
        "zeusm": dpctl.SyclQueue("level_zero:gpu"),
        "OpenCL": dpctl.SyclQueue("opencl:cpu"),
    }
    launching = {peer: launches(queue) for peer, queue in queues.items()}
    computing = {peer: arrays(queue) for peer, queue in queues.items()}
    for group, name, choose, rest in (
        ("launch an empty kernel", "waited for", lambda peer: launching[peer][0], REST),
        ("launch ten empty kernels", "waited for together", lambda peer: launching[peer][1], REST),
        ("compute", "add 10^7 float32", lambda peer: computing[peer][0], REST_OF_FLOATS),
        ("compute", "sum 10^7 float32", lambda peer: computing[peer][1], REST_OF_FLOATS),
    ):
        compare(group, name, {peer: choose(peer) for peer in queues}, rest=rest)
    functions = {peer: small(queue) for peer, queue in queues.items()}
    compare("small operation of dpnp", f"add {SMALL} int32", functions, rest=REST)
    for count in CHAIN:
        functions = {peer: chain(queue, count) for peer, queue in queues.items()}
        compare("chain of ten kernels", f"add {count} int32", functions, rest=REST)


if __name__ == "__main__":
    main()
