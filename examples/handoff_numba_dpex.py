"""A numba-dpex kernel works on memory that zeusm allocated."""

import numpy as np
import zeusm.memory

# isort: split
import dpctl.memory
import dpctl.tensor
import numba_dpex


@numba_dpex.kernel
def triple(item, x, y):
    i = item.get_id(0)
    y[i] = 3 * x[i]


def usm_array(memory, shape, dtype):
    """Wrap the memory in an array for numba-dpex without a copy, on dpctl's cached queue of the device."""
    buffer = dpctl.memory.as_usm_memory(memory)
    return dpctl.tensor.usm_ndarray(shape, dtype, buffer=buffer).to_device(memory.sycl_device)


source = zeusm.memory.MemoryUSMShared(4 * 1000)
result = zeusm.memory.MemoryUSMShared(4 * 1000)
np.frombuffer(source, dtype="f4")[:] = np.arange(1000)

x = usm_array(source, 1000, "f4")
y = usm_array(result, 1000, "f4")
assert y.usm_data._pointer == result._pointer
numba_dpex.call_kernel(triple, numba_dpex.Range(1000), x, y)

numbers = memoryview(result).cast("f")
assert numbers.tolist() == [3 * i for i in range(1000)]
print("the kernel wrote", numbers[0], "to", numbers[-1], "on", y.sycl_device.name)
