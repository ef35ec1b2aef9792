"""What Numba calls when it starts, by the entry point `numba_extensions`, in programs with and without zeusm.

It lives outside of the package `zeusm`, so that Numba does not import that. A program that imports zeusm after Numba
has it register by itself.
"""

import sys


def init() -> None:
    """Have zeusm register with Numba, if the program has imported zeusm."""
    if "zeusm" in sys.modules:
        from zeusm._numba_dpex import register

        register()
