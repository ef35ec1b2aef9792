"""zeusm and dpctl share USM memory: the same pointer on both sides, nothing is copied."""

import zeusm.memory  # Before dpctl lists the devices, so that it finds one without a GPU.

# isort: split
import dpctl.memory

mine = zeusm.memory.MemoryUSMShared(4096)
theirs = dpctl.memory.as_usm_memory(mine)
assert theirs._pointer == mine._pointer
assert theirs.get_usm_type() == mine.get_usm_type() == "shared"
assert theirs.sycl_context == mine.sycl_context

theirs.copy_from_host(b"written by dpctl")
assert bytes(memoryview(mine)[:16]) == b"written by dpctl"

back = zeusm.memory.as_usm_memory(dpctl.memory.MemoryUSMDevice(4096))
assert type(back) is zeusm.memory.MemoryUSMDevice
print(mine, "is", theirs)
