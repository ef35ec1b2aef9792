"""dpnp computes on memory that zeusm allocated; the result is read through a memoryview."""

import numpy as np
import zeusm.memory

# isort: split
import dpctl.memory
import dpnp

try:
    from dpnp.tensor import usm_ndarray
except ImportError:  # dpnp before 0.19 uses dpctl's array.
    from dpctl.tensor import usm_ndarray


def dpnp_array(memory, shape, dtype):
    """Wrap the memory in a dpnp array without a copy, on dpctl's cached queue of the device."""
    array = usm_ndarray(shape, dtype=dtype, buffer=dpctl.memory.as_usm_memory(memory))
    return dpnp.asarray(array.to_device(memory.sycl_device))


source = zeusm.memory.MemoryUSMShared(4 * 1000)
result = zeusm.memory.MemoryUSMShared(4 * 1000)
np.frombuffer(source, dtype="f4")[:] = np.arange(1000)

x = dpnp_array(source, 1000, "f4")
y = dpnp_array(result, 1000, "f4")
y[...] = 2 * x + 1
y.sycl_queue.wait()

assert y.get_array().usm_data._pointer == result._pointer
numbers = memoryview(result).cast("f")
assert numbers.tolist() == [2 * i + 1 for i in range(1000)]
print("dpnp wrote", numbers[0], "to", numbers[-1], "on", y.sycl_device.name)
