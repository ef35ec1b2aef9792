#!/bin/sh
# Runs a Python program on zeusm's runtime, or on a GPU, by Intel MPI with GPU offload: run.sh <ranks> <program> [arguments].
# Intel MPI is the wheel impi-rt in the active environment, which has no script that sets its variables (docs/scale.md).
set -eu
ranks=$1
shift
export I_MPI_ROOT=$VIRTUAL_ENV I_MPI_OFFLOAD=1 MPI4PY_LIBMPI=$VIRTUAL_ENV/lib/libmpi.so.12
export FI_PROVIDER=shm FI_PROVIDER_PATH=$VIRTUAL_ENV/lib/libfabric/prov
export LD_LIBRARY_PATH=$VIRTUAL_ENV/lib:$VIRTUAL_ENV/lib/libfabric
exec python -m zeusm run "$VIRTUAL_ENV/bin/mpirun" -n "$ranks" python "$@"
