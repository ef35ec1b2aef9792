"""The time of kernels on zeusm's CPU runtime, compared with OpenCL's CPU device in the same process."""

import struct

import opencl  # noqa: F401 (before SYCL)
import zeusm  # noqa: F401 (before SYCL)
from compare import compare

# isort: split
import dpctl
import dpctl.program
import dpnp

N = 10_000_000


def empty_module():
    """The SPIR-V of `kernel void empty() {}`."""
    name = b"empty\0\0\0"
    words = [0x07230203, 0x00010000, 0, 5, 0]  # Magic, version 1.0, generator, bound, schema.

    def instruction(code, *operands):
        words.append((len(operands) + 1) << 16 | code)
        words.extend(operands)

    instruction(17, 4)  # OpCapability Addresses
    instruction(17, 6)  # OpCapability Kernel
    instruction(14, 2, 2)  # OpMemoryModel Physical64 OpenCL
    instruction(15, 6, 3, *struct.unpack("<2I", name))  # OpEntryPoint Kernel %3 "empty"
    instruction(19, 1)  # %1 = OpTypeVoid
    instruction(33, 2, 1)  # %2 = OpTypeFunction %1
    instruction(54, 1, 3, 0, 2)  # %3 = OpFunction %1 None %2
    instruction(248, 4)  # %4 = OpLabel
    instruction(253)  # OpReturn
    instruction(56)  # OpFunctionEnd
    return struct.pack(f"<{len(words)}I", *words)


def launches(queue):
    """The time of one empty kernel with a wait, and of ten empty kernels with one wait."""
    kernel = dpctl.program.create_program_from_spirv(queue, empty_module()).get_sycl_kernel("empty")

    def one():
        queue.submit(kernel, [], [1]).wait()

    def ten():
        for _ in range(10):
            event = queue.submit(kernel, [], [1])
        event.wait()
        queue.wait()

    return one, ten


def arrays(queue):
    """A vector addition and a reduction of float32."""
    x, y = (dpnp.full(N, value, dtype="f4", sycl_queue=queue) for value in (1, 2))
    result = dpnp.empty_like(x)

    def add():
        dpnp.add(x, y, out=result)
        queue.wait()

    def reduce():
        dpnp.sum(x)
        queue.wait()

    return add, reduce


def main():
    queues = {
        "zeusm": dpctl.SyclQueue("level_zero:gpu"),
        "OpenCL": dpctl.SyclQueue("opencl:cpu"),
    }
    launching = {peer: launches(queue) for peer, queue in queues.items()}
    computing = {peer: arrays(queue) for peer, queue in queues.items()}
    for group, name, choose in (
        ("launch an empty kernel", "waited for", lambda peer: launching[peer][0]),
        ("launch ten empty kernels", "waited for together", lambda peer: launching[peer][1]),
        ("compute", "add 10^7 float32", lambda peer: computing[peer][0]),
        ("compute", "sum 10^7 float32", lambda peer: computing[peer][1]),
    ):
        compare(group, name, {peer: choose(peer) for peer in queues})


if __name__ == "__main__":
    main()
