"""What runs over PoCL."""

from compared import Compared
from programs import Pytest, Rust
from root import PROJECT

NUMBA_DPEX = {"LD_LIBRARY_PATH": PROJECT / ".venv-numba-dpex/lib"}

AREAS = {
    "kernels": Rust("kernels"),
    "tables": Pytest(".venv", "tests/python", ["test_kernel_tables.py"]),
    "numba-dpex": Pytest(".venv-numba-dpex", "tests/python", ["test_numba_dpex.py"], **NUMBA_DPEX),
    "jax": Pytest(".venv-jax", "tests/jax", ["test_jax.py"]),
    "compared-dpnp": Compared(".venv", "of_dpnp"),
    "compared-numba-dpex": Compared(".venv-numba-dpex", "of_numba_dpex", **NUMBA_DPEX),
}
