"""The entry point `numba_extensions`, which Numba calls at its start in programs with and without zeusm.

It is not part of the package `zeusm`, so that Numba does not import that package. When a program imports zeusm after
Numba, zeusm registers itself.
"""

import sys


def init() -> None:
    """Register zeusm's types with Numba if the program has imported zeusm."""
    if "zeusm" in sys.modules:
        from zeusm._numba import register

        register()
