"""Allreduce without an end: `endless.py KIND ELEMENTS`. The rank 1 is killed by a timer, in whatever it does then."""

import signal
import sys

import numpy as np
import zeusm
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
mine = zeusm.asarray(np.ones(int(sys.argv[2])), usm_type=sys.argv[1])
total = zeusm.empty(mine.shape, usm_type=sys.argv[1])
WORLD.Allreduce(mine, total)
assert (total.copy_to_host() == WORLD.size).all()
print(WORLD.rank, "begins", flush=True)
if WORLD.rank == 1:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
while True:
    WORLD.Allreduce(mine, total)
