"""Support for `UsmArray` as an argument of functions that Numba compiles.

`register` is called when a program has imported both Numba and zeusm. Functions for the host get a NumPy array over the same
memory. In programs that have imported numba-dpex, its kernels get dpctl's array.
"""

import sys
from functools import cache
from typing import Any

from zeusm._zeusm import UsmArray, _shared_queue

NOT_ACCESSIBLE = (
    "numba.njit compiles for the host, which must not touch USM-device memory; "
    "numba_dpex.dpjit and kernels take it"
)


def _unboxing(convert: Any, native_type: Any, more: Any = lambda typ, c: ()) -> Any:
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
    unbox(UsmHostArrayType)(_unboxing(numpy.asarray, UsmHostArrayType.as_numpy))
    return UsmHostArrayType


def _as_dpctl(array: UsmArray, queue_key: int, on_host: bool) -> Any:
    """Wrap the array in a dpctl array without a copy, on the queue of its Numba type."""
    import dpctl.memory
    import dpctl.tensor

    if array.ndim == 0:
        raise TypeError("numba-dpex takes no arrays without dimensions; give it array.reshape(1)")
    if on_host and array.usm_type == "device":
        raise TypeError(NOT_ACCESSIBLE)
    if array.size and array._pointer % array.dtype.alignment:
        raise ValueError(
            f"the elements of {array!r} are not aligned, as fields of packed records are not, and kernels need them "
            "to be: give the kernel copy.copy(array), or use records with padding"
        )
    queue = _shared_queue(array)  # All arrays of a kernel must have the same queue.
    if hash(queue) != queue_key:
        # Numba caches the types of host-accessible arrays by element type, dimensions and layout only.
        raise ValueError(
            f"Numba took {array!r} for an array of another context, which it met before; "
            "give the kernel dpctl.tensor.asarray(array).to_device(queue) instead"
        )
    return dpctl.tensor.usm_ndarray(
        array.shape,
        array.dtype,
        array.strides,
        buffer=dpctl.memory.as_usm_memory(array.base),
        offset=array.offset,
    ).to_device(queue)


@cache
def _dpex_array_type() -> Any:
    """Return Numba's type of a `UsmArray`: a subclass of numba-dpex's array type that is unboxed as a dpctl array."""
    from numba.core import cgutils
    from numba.extending import unbox
    from numba_dpex.core.datamodel import models
    from numba_dpex.core.descriptor import dpex_kernel_target
    from numba_dpex.core.targets.dpjit_target import DpexTargetContext
    from numba_dpex.core.types import USMNdArray

    class UsmArrayType(USMNdArray):  # type: ignore[misc]
        def as_dpctl(self) -> Any:
            return USMNdArray(
                self.ndim,
                self.layout,
                self.dtype,
                self.usm_type,
                queue=self.queue,
                readonly=not self.mutable,
            )

    for kernels in (
        models.dpex_data_model_manager,
        dpex_kernel_target.target_context.data_model_manager,
    ):
        kernels.register(UsmArrayType, models.USMArrayDeviceModel)
    models.dpjit_data_model_manager.register(UsmArrayType, models.USMArrayHostModel)

    def queue_and_target(typ: Any, c: Any) -> Any:
        is_on_host = not isinstance(c.context, DpexTargetContext)
        return (
            c.pyapi.unserialize(c.pyapi.serialize_object(typ.queue.key)),
            c.pyapi.bool_from_bool(cgutils.true_bit if is_on_host else cgutils.false_bit),
        )

    unbox(UsmArrayType)(_unboxing(_as_dpctl, UsmArrayType.as_dpctl, queue_and_target))
    return UsmArrayType


def _type_for_dpex(array: UsmArray, dtype: Any, layout: str) -> Any:
    """Return the type of an array, given Numba's type of its elements and its layout."""
    if array.dtype.names is not None:
        raise TypeError(
            f"numba-dpex takes no records; give it a field, one of {', '.join(array.dtype.names)}"
        )
    from numba_dpex.core.types import DpctlSyclQueue

    return _dpex_array_type()(
        array.ndim,
        layout,
        dtype,
        array.usm_type,
        queue=DpctlSyclQueue(_shared_queue(array)),
        readonly=array.readonly,
    )


def _typeof(array: UsmArray, context: Any) -> Any:
    import numpy
    from numba.core.typing.typeof import Purpose
    from numba.np.numpy_support import from_dtype

    if context.purpose is Purpose.constant:
        # Numba copies the value of a global variable when it compiles. Without a type, its error names the variable.
        return None
    layout = "C" if array.c_contiguous else "F" if array.f_contiguous else "A"
    if "numba_dpex" in sys.modules:
        return _type_for_dpex(array, from_dtype(array.dtype), layout)
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
