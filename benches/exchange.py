"""The time of an exchange by DLPack, beside NumPy's arrays by Python calls, and tvm-ffi's own tensors by the table of functions."""

from functools import partial

import zeusm
from compare import compare

# isort: split
import numpy
import tvm_ffi


def main():
    theirs = numpy.arange(24.0).reshape(4, 6)
    wrapped = tvm_ffi.core.DLTensorTestWrapper(tvm_ffi.from_dlpack(theirs))
    nothing = tvm_ffi.get_global_func("testing.nop")
    for kind in ("device", "shared", "host"):
        ours = zeusm.asarray(theirs, usm_type=kind)
        for name, functions in {
            "__dlpack__": {"zeusm": ours.__dlpack__, "NumPy": theirs.__dlpack__},
            "from_dlpack": {
                "zeusm": partial(zeusm.from_dlpack, ours),
                "NumPy": partial(numpy.from_dlpack, theirs),
            },
            "pass to a function of tvm-ffi": {
                "zeusm": partial(nothing, ours, ours, ours),
                "tvm-ffi": partial(nothing, wrapped, wrapped, wrapped),
            },
        }.items():
            compare(name, kind, functions)


if __name__ == "__main__":
    main()
