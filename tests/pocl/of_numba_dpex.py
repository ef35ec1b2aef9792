"""Kernels of numba-dpex whose results NumPy has, too: operations, local memory with barriers, private arrays, atomic operations."""

import math
from functools import partial

import dpctl.tensor
import numba_dpex
import numpy as np
from numba_dpex import kernel_api

ITEMS, GROUP = 192, 48
INTEGERS, FLOATS = ["int32", "int64"], ["float32", "float64"]
DTYPES = [*INTEGERS, *FLOATS]
CASES = {}


def case(*dtypes, layouts=("in a row", "strided")):
    """Adds a case for each type and layout of `run(device, dtype, make)`."""

    def add(run):
        for dtype in dtypes:
            for layout in layouts:
                name = f"{run.__name__.replace('_', ' ')} {dtype} {layout}"
                CASES[name] = partial(compare, run, dtype, layout)
        return run

    return add


def compare(run, dtype, layout, device):
    """`run` gets arrays of the host and of the device, and returns what to compare."""
    values = np.random.default_rng(3).integers(1, 9, 2 * ITEMS).astype(dtype)
    step = 2 if layout == "strided" else 1
    x = dpctl.tensor.asarray(values, device=device)[: ITEMS * step : step]
    y = dpctl.tensor.zeros(ITEMS * step, dtype=dtype, device=device)[::step]
    expected = run(values[: ITEMS * step : step], x, y)
    found = dpctl.tensor.asnumpy(y)
    tolerance = {"float32": 2e-6, "float64": 1e-13}.get(dtype, 0)
    return np.allclose(found, expected, rtol=tolerance, atol=tolerance)


def over_range(kernel, *arrays):
    numba_dpex.call_kernel(kernel, numba_dpex.Range(ITEMS), *arrays)


def over_groups(kernel, *arrays):
    numba_dpex.call_kernel(kernel, numba_dpex.NdRange((ITEMS,), (GROUP,)), *arrays)


@numba_dpex.kernel
def polynomial_kernel(item, x, y):
    i = item.get_id(0)
    y[i] = 3 * x[i] * x[i] - x[i] + 7


@case(*DTYPES)
def polynomial(values, x, y):
    over_range(polynomial_kernel, x, y)
    return 3 * values * values - values + 7


@numba_dpex.kernel
def branches_kernel(item, x, y):
    i = item.get_id(0)
    value = x[i]
    while value < 100:
        if i % 3 == 0:
            value += 3
        else:
            value += value
    y[i] = value


@case(*DTYPES)
def branches(values, x, y):
    over_range(branches_kernel, x, y)
    values = values.copy()
    for i in range(ITEMS):
        while values[i] < 100:
            values[i] += 3 if i % 3 == 0 else values[i]
    return values


@numba_dpex.kernel
def functions_kernel(item, x, y):
    i = item.get_id(0)
    y[i] = math.sin(x[i]) + math.exp(-x[i]) * math.sqrt(x[i]) + math.floor(x[i] / 3)


@case(*FLOATS)
def functions(values, x, y):
    over_range(functions_kernel, x, y)
    return np.sin(values) + np.exp(-values) * np.sqrt(values) + np.floor(values / 3)


@numba_dpex.kernel
def division_kernel(item, x, y):
    i = item.get_id(0)
    y[i] = (i + 5) // x[i] + (i % x[i])


@case(*INTEGERS)
def division(values, x, y):
    over_range(division_kernel, x, y)
    i = np.arange(ITEMS)
    return (i + 5) // values + i % values


@numba_dpex.kernel
def neighbours_kernel(item, x, y):
    i = item.get_id(0)
    if i > 0:
        y[i] = x[i] - x[i - 1]
    else:
        y[i] = x[i]


@case(*DTYPES)
def neighbours(values, x, y):
    over_range(neighbours_kernel, x, y)
    return np.diff(values, prepend=values.dtype.type(0))


@numba_dpex.kernel
def private_array_kernel(item, x, y):
    i = item.get_id(0)
    held = kernel_api.PrivateArray(8, x.dtype)
    for k in range(8):
        held[k] = x[(i + k) % x.shape[0]]
    total = held[0]
    for k in range(1, 8):
        total += held[k] * k
    y[i] = total


@case(*DTYPES)
def private_array(values, x, y):
    over_range(private_array_kernel, x, y)
    parts = [np.roll(values, -k) * max(k, 1) for k in range(8)]
    return sum(parts[1:], parts[0]).astype(values.dtype)


@numba_dpex.kernel
def local_sum_kernel(nd_item, x, y, local):
    i, lane = nd_item.get_global_id(0), nd_item.get_local_id(0)
    local[lane] = x[i]
    kernel_api.group_barrier(nd_item.get_group(), kernel_api.MemoryScope.WORK_GROUP)
    total = local[0]
    for k in range(1, local.shape[0]):
        total += local[k]
    y[i] = total


@case(*DTYPES)
def local_sum(values, x, y):
    local = kernel_api.LocalAccessor((GROUP,), dtype=x.dtype)
    over_groups(local_sum_kernel, x, y, local)
    return np.repeat(values.reshape(-1, GROUP).sum(axis=1), GROUP)


@numba_dpex.kernel
def local_reversed_kernel(nd_item, x, y, local):
    i, lane = nd_item.get_global_id(0), nd_item.get_local_id(0)
    local[lane] = x[i]
    for _ in range(3):
        kernel_api.group_barrier(nd_item.get_group(), kernel_api.MemoryScope.WORK_GROUP)
        value = local[local.shape[0] - 1 - lane]
        kernel_api.group_barrier(nd_item.get_group(), kernel_api.MemoryScope.WORK_GROUP)
        local[lane] = value
    y[i] = local[lane]


@case(*DTYPES)
def local_reversed(values, x, y):
    local = kernel_api.LocalAccessor((GROUP,), dtype=x.dtype)
    over_groups(local_reversed_kernel, x, y, local)
    return values.reshape(-1, GROUP)[:, ::-1].ravel()


@numba_dpex.kernel
def atomic_sum_kernel(item, x, y):
    total = kernel_api.AtomicRef(y, index=0)
    total.fetch_add(x[item.get_id(0)])


@case(*DTYPES, layouts=["in a row"])
def atomic_sum(values, x, y):
    over_range(atomic_sum_kernel, x, y)
    expected = np.zeros_like(values)
    expected[0] = values.sum()
    return expected


@numba_dpex.kernel
def atomic_greatest_kernel(item, x, y):
    greatest = kernel_api.AtomicRef(y, index=1)
    greatest.fetch_max(x[item.get_id(0)])


@case(*DTYPES, layouts=["in a row"])
def atomic_greatest(values, x, y):
    over_range(atomic_greatest_kernel, x, y)
    expected = np.zeros_like(values)
    expected[1] = values.max()
    return expected
