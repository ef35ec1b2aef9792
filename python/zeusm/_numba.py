"""Support for `UsmArray` as an argument of functions that Numba compiles.

`register` is called when a program has imported both Numba and zeusm. Functions for the host get a NumPy array over the same
memory. In programs that have imported numba-dpex, kernels get dpctl's array (`zeusm._numba_dpex`).
"""

import sys
from functools import cache
from typing import Any

from zeusm._zeusm import UsmArray

NOT_ACCESSIBLE = (
    "numba.njit compiles for the host, which must not touch USM-device memory; "
    "numba_dpex.dpjit and kernels take it"
)


def unboxing(convert: Any, native_type: Any, more: Any = lambda typ, c: ()) -> Any:
    """Return a function that unboxes an object as the array that `convert` makes of it, of the type `native_type(typ)`.

    `more(typ, c)` makes further arguments of `convert`.
    """
    from numba.core import cgutils
    from numba.extending import NativeValue

    def unbox_array(typ: Any, obj: Any, c: Any) -> Any:
        builder, python = c.builder, c.pyapi
        nothing = cgutils.get_null_value(c.context.get_value_type(typ))
        value = cgutils.alloca_once_value(builder, nothing)
        failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
        # After an argument has failed, Numba still unboxes the others; the first error must be preserved.
        with builder.if_then(cgutils.is_null(builder, python.err_occurred())):
            function = python.unserialize(python.serialize_object(convert))
            arguments = more(typ, c)
            array = python.call_function_objargs(function, (obj, *arguments))
            for owned in (*arguments, function):
                python.decref(owned)
            with builder.if_then(cgutils.is_not_null(builder, array)):
                native = c.unbox(native_type(typ), array)
                builder.store(native.value, value)
                builder.store(native.is_error, failed)
                python.decref(array)
        return NativeValue(builder.load(value), is_error=builder.load(failed))

    return unbox_array


@cache
def _host_array_type() -> Any:
    """Return Numba's type of a `UsmArray` on the host: a subclass of its array type that is unboxed as a NumPy array."""
    import numpy
    from numba.core.datamodel.models import ArrayModel
    from numba.core.types import Array
    from numba.extending import register_model, unbox

    class UsmHostArrayType(Array):
        def as_numpy(self) -> Any:
            return Array(
                self.dtype, self.ndim, self.layout, readonly=not self.mutable, aligned=self.aligned
            )

    register_model(UsmHostArrayType)(ArrayModel)
    unbox(UsmHostArrayType)(unboxing(numpy.asarray, UsmHostArrayType.as_numpy))
    return UsmHostArrayType


def _typeof(array: UsmArray, context: Any) -> Any:
    import numpy
    from numba.core.typing.typeof import Purpose
    from numba.np.numpy_support import from_dtype

    if context.purpose is Purpose.constant:
        # Numba copies the value of a global variable when it compiles. Without a type, its error names the variable.
        return None
    layout = "C" if array.c_contiguous else "F" if array.f_contiguous else "A"
    if "numba_dpex" in sys.modules:
        from zeusm import _numba_dpex

        return _numba_dpex.type_of(array, from_dtype(array.dtype), layout)
    if array.usm_type == "device":
        raise TypeError(NOT_ACCESSIBLE)
    # A field of packed records may be at any address, which is part of the type.
    aligned = numpy.asarray(array).flags.aligned
    name = (
        f"UsmArray({array.dtype}, {array.ndim}d, {layout}, readonly={array.readonly}, {aligned=})"
    )
    array_type = _host_array_type()
    return array_type(from_dtype(array.dtype), array.ndim, layout, array.readonly, name, aligned)


def register() -> None:
    """Register the type of `UsmArray` with Numba."""
    from numba.extending import typeof_impl

    typeof_impl.register(UsmArray)(_typeof)
