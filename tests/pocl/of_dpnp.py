"""Calls of dpnp whose results NumPy has, too: functions by types by layouts, each a kernel of its own."""

from functools import partial

import dpnp
import numpy as np

INTEGERS, FLOATS, COMPLEX = ["i4", "i8"], ["f4", "f8"], ["c8"]
NUMBERS = [*INTEGERS, *FLOATS]
UNARY = {
    "abs negative sign square isfinite": NUMBERS,
    "sqrt exp log1p sin cosh arctan tanh cbrt floor rint exp2": FLOATS,
    "conj exp sin sqrt": COMPLEX,
    "invert": ["?", "u1", *INTEGERS],
}
BINARY = {
    "add subtract multiply maximum less equal": [*NUMBERS, "u1"],
    "divide power hypot arctan2 logaddexp copysign": FLOATS,
    "floor_divide remainder": NUMBERS,
    "bitwise_xor left_shift": INTEGERS,
    "multiply divide": COMPLEX,
}
# With an axis, and of all elements. PoCL takes minutes to build those of dpnp that have no operation of SYCL (prod, max, argmin).
REDUCTIONS = {"sum": ["i4", "f4", "f8"]}
OTHERS = {"cumsum sort": ["f4"], "nonzero": ["i4"]}


def condition(xp, x):
    """Truth values that no kernel has computed, in an array that is backwards, as those of comparisons are."""
    values = (np.arange(x.size) % 3 > 0).reshape(x.shape)
    values = values if xp is np else dpnp.asarray(values, device=x.sycl_device)
    return values[:, ::-1]


ARRANGED = {
    "argsort": lambda xp, x: xp.argsort(x, kind="stable"),
    "roll": lambda xp, x: xp.roll(x, 3),
    "tril": lambda xp, x: xp.tril(x),
    "repeat": lambda xp, x: xp.repeat(x, 3, axis=0),
    "clip": lambda xp, x: xp.clip(x, 2, 5),
    "where": lambda xp, x: xp.where(condition(xp, x), x, x[::-1]),
    "masked": lambda xp, x: x[x > 3],
    "concatenate": lambda xp, x: xp.concatenate([x, x[::-1]]),
    "searchsorted": lambda xp, x: xp.searchsorted(xp.sort(x.ravel()), x.ravel()),
    "to another type": lambda xp, x: x.astype("f8" if x.dtype.itemsize == 4 else "i4"),
    "diff": lambda xp, x: xp.diff(x, axis=0),
}
LAYOUTS = {"in a row": lambda x: x, "strided": lambda x: x[::2, ::-3]}
TOLERANCE = {"f": 2e-5, "d": 1e-11, "F": 2e-5, "D": 1e-11}


def numbers(dtype, seed=0):
    """Small numbers above zero, which each function takes, in an array that is not a multiple of any vector's length."""
    values = np.random.default_rng(seed).integers(1, 7, (42, 51))
    if np.dtype(dtype).kind in "fc":
        values = values / 4
    if np.dtype(dtype).kind == "c":
        values = values + 0.5j
    return values.astype(dtype)


def named(table):
    pairs = [(names.split(), dtypes) for names, dtypes in table.items()]
    return [(name, dtype) for names, dtypes in pairs for name in names for dtype in dtypes]


def called(name, count, **options):
    """A call of the function with as many operands."""
    return lambda xp, *operands: getattr(xp, name)(*operands[:count], **options)


def on_first(function, xp, operand, _):
    return function(xp, operand)


def calls():
    """The name, the type, the layout and the call of each case."""
    for layout in LAYOUTS:
        for table, count in ((UNARY, 1), (BINARY, 2)):
            for name, dtype in named(table):
                yield f"{name} {dtype} {layout}", dtype, layout, called(name, count)
    for name, dtype in named(REDUCTIONS):
        for axis in (None, 0):
            call = called(name, 1, axis=axis)
            yield f"{name} {dtype} axis {axis}", dtype, "in a row", call
    for name, dtype in named(OTHERS):
        yield f"{name} {dtype}", dtype, "in a row", called(name, 1)
    for name, arranged in ARRANGED.items():
        for dtype in ("i4", "f8"):
            call = partial(on_first, arranged)
            yield f"{name} {dtype}", dtype, "strided", call


def compare(case, device):
    """Whether dpnp's result on the device is NumPy's."""
    dtype, layout, call = case
    hosts = [LAYOUTS[layout](numbers(dtype, seed)) for seed in (1, 2)]
    operands = [
        LAYOUTS[layout](dpnp.asarray(numbers(dtype, seed), device=device)) for seed in (1, 2)
    ]
    expected, found = call(np, *hosts), call(dpnp, *operands)
    return is_same(found, expected)


def is_same(found, expected):
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    found = dpnp.asnumpy(found)
    tolerance = TOLERANCE.get(found.dtype.char, 0)
    # NumPy calculates some with more bits.
    return found.shape == np.shape(expected) and np.allclose(
        found, expected, rtol=tolerance, atol=tolerance, equal_nan=True
    )


# By name: whether the result on a device is right.
CASES = {name: partial(compare, case) for name, *case in calls()}
