"""NumPy works on host and shared USM memory in place, through the buffer protocol."""

import numpy as np
import zeusm.memory

memory = zeusm.memory.MemoryUSMHost(8 * 1000)
array = np.frombuffer(memory, dtype="f8")
assert array.ctypes.data == memory._pointer

array[:] = np.linspace(0, 1, 1000)
device = zeusm.memory.MemoryUSMDevice(memory.nbytes)
device.copy_from_device(memory)
assert np.frombuffer(device.tobytes(), dtype="f8")[-1] == 1.0

del memory  # The array keeps it alive.
print("sum of", array.size, "numbers in USM host memory:", array.sum())
