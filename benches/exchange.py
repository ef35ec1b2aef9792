"""The time of an exchange by DLPack, beside NumPy's arrays by Python calls, dpnp's import of its own, and tensors of tvm-ffi and,
where it is installed, of PyTorch by the table of functions."""

import importlib.util
from functools import partial

import zeusm
from compare import compare

# isort: split
import numpy
import tvm_ffi


def own_import():
    """dpnp's array, and its import of one."""
    from dpnp import tensor

    return tensor.arange(24.0), tensor.from_dlpack


def main():
    theirs = numpy.arange(24.0).reshape(4, 6)
    nothing = tvm_ffi.get_global_func("testing.nop")
    tensors = {"tvm-ffi": tvm_ffi.core.DLTensorTestWrapper(tvm_ffi.from_dlpack(theirs))}
    if importlib.util.find_spec("torch"):
        import torch

        tensors["PyTorch"] = torch.from_numpy(theirs)
    for kind in ("device", "shared", "host"):
        ours = zeusm.asarray(theirs, usm_type=kind)
        passed = {"zeusm": ours, **tensors}
        for name, functions in {
            "__dlpack__": {"zeusm": ours.__dlpack__, "NumPy": theirs.__dlpack__},
            "from_dlpack": {
                "zeusm": partial(zeusm.from_dlpack, ours),
                "NumPy": partial(numpy.from_dlpack, theirs),
            },
            "pass to a function of tvm-ffi": {
                peer: partial(nothing, each, each, each) for peer, each in passed.items()
            },
        }.items():
            compare(name, kind, functions)
    if importlib.util.find_spec("dpnp"):
        array, import_it = own_import()
        functions = {
            "zeusm": partial(zeusm.from_dlpack, array),
            "dpnp": partial(import_it, array),
        }
        compare("from_dlpack of dpnp's array", "", functions)


if __name__ == "__main__":
    main()
