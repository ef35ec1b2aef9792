"""What runs over PoCL."""

from compared import Compared
from programs import Pytest, Rust
from root import PROJECT

PACKAGES = "lib/python3.11/site-packages"
# As for the tests of tests/soak: without this project's options, and zeusm loaded first, so that its runtime serves.
OF_A_PACKAGE = ("-c", "/dev/null", "--rootdir", "/", "-p", "zeusm.memory")
NUMBA_DPEX = {"LD_LIBRARY_PATH": PROJECT / ".venv-numba-dpex/lib"}


def of_package(environment, package, files, **variables):
    folder = f"{environment}/{PACKAGES}/{package}/tests"
    return Pytest(environment, folder, files, OF_A_PACKAGE, **variables)


AREAS = {
    "kernels": Rust("kernels"),
    "tables": Pytest(".venv", "tests/python", ["test_kernels.py", "test_kernel_tables.py"]),
    "dpnp": of_package(
        ".venv", "dpnp", ["test_sum.py", "test_sort.py", "test_logic.py", "test_bitwise.py"]
    ),
    "numba-dpex": Pytest(".venv-numba-dpex", "tests/python", ["test_numba_dpex.py"], **NUMBA_DPEX),
    "numba-dpex-own": of_package(".venv-numba-dpex", "numba_dpex", ["kernel_tests"], **NUMBA_DPEX),
    "compared-dpnp": Compared(".venv", "of_dpnp"),
    "compared-numba-dpex": Compared(".venv-numba-dpex", "of_numba_dpex", **NUMBA_DPEX),
}
