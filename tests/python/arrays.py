"""Helpers of the array tests: element types, data, and the comparison with NumPy."""

import numpy as np
from hypothesis.extra import numpy as hnp

DTYPES = [
    *["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    *["float16", "float32", "float64", "complex64", "complex128"],
]


def numbers(shape, dtype="int32"):
    """Elements that are all different, as far as the type permits."""
    return np.arange(1, 1 + np.prod(shape, dtype=int)).astype(dtype).reshape(shape)


def mirrored(array, view):
    """Whether a view of a UsmArray equals the view of the NumPy array."""
    assert view.shape == array.shape
    assert view.dtype == array.dtype
    if array.size:
        relevant = [axis for axis, size in enumerate(array.shape) if size > 1]
        strides = [array.strides[axis] // array.itemsize for axis in relevant]
        assert [view.strides[axis] for axis in relevant] == strides
    np.testing.assert_array_equal(view.copy_to_host(), array)
    return True


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def indices(shape):
    return hnp.basic_indices(shape, max_dims=6, allow_newaxis=True, allow_ellipsis=True)
