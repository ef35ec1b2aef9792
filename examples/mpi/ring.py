"""Sends an array of device memory around the ranks, each of which adds its number by dpnp; the sum comes back to the first."""

import numpy as np
import zeusm
from mpi4py import MPI

# isort: split
import dpnp

ranks = MPI.COMM_WORLD
here, size = ranks.Get_rank(), ranks.Get_size()
array = zeusm.asarray(np.zeros(1000, "float32"), usm_type="device")
numbers = dpnp.from_dlpack(array)
if here:
    ranks.Recv(array, source=here - 1)
numbers += here
numbers.sycl_queue.wait()
ranks.Send(array, dest=(here + 1) % size)
if here == 0:
    ranks.Recv(array, source=size - 1)
    assert array.copy_to_host().tolist() == [sum(range(size))] * 1000
    print(f"{size} ranks: right")
