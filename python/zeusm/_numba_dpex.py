"""Support for `UsmArray` as an argument of numba-dpex's kernels, as for dpctl's arrays.

`zeusm._numba` imports this module when a program has imported numba-dpex and passes a `UsmArray` to a compiled function.
"""

from functools import cache
from typing import Any

from zeusm._numba import NOT_ACCESSIBLE
from zeusm._zeusm import UsmArray


def _shared_queue(array: UsmArray) -> Any:
    """Return dpctl's cached queue of the array's context; all arrays of a kernel must have the same queue."""
    import dpctl

    return dpctl.get_device_cached_queue((array.sycl_context, array.sycl_device))


def _as_dpctl(array: UsmArray, queue_key: int, on_host: bool) -> Any:
    """Wrap the array in a dpctl array without a copy, on the queue of its Numba type."""
    import dpctl.memory
    import dpctl.tensor

    if array.ndim == 0:
        raise TypeError("numba-dpex takes no arrays without dimensions; give it array.reshape(1)")
    if on_host and array.usm_type == "device":
        raise TypeError(NOT_ACCESSIBLE)
    queue = _shared_queue(array)
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
def _array_type() -> Any:
    """Return Numba's type of a `UsmArray`: a subclass of numba-dpex's array type that is unboxed as a dpctl array."""
    from numba.core import cgutils
    from numba.extending import NativeValue, unbox
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

    @unbox(UsmArrayType)  # type: ignore[untyped-decorator]
    def unbox_array(typ: Any, obj: Any, c: Any) -> Any:
        builder, python = c.builder, c.pyapi
        nothing = cgutils.get_null_value(c.context.get_value_type(typ))
        value = cgutils.alloca_once_value(builder, nothing)
        failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
        # After an argument has failed, Numba still unboxes the others; the first error must be preserved.
        with builder.if_then(cgutils.is_null(builder, python.err_occurred())):
            convert = python.unserialize(python.serialize_object(_as_dpctl))
            key = python.unserialize(python.serialize_object(typ.queue.key))
            on_host = python.bool_from_bool(
                cgutils.false_bit if isinstance(c.context, DpexTargetContext) else cgutils.true_bit
            )
            array = python.call_function_objargs(convert, (obj, key, on_host))
            python.decref(on_host)
            python.decref(key)
            python.decref(convert)
            with builder.if_then(cgutils.is_not_null(builder, array)):
                native = c.unbox(typ.as_dpctl(), array)
                builder.store(native.value, value)
                builder.store(native.is_error, failed)
                python.decref(array)
        return NativeValue(builder.load(value), is_error=builder.load(failed))

    return UsmArrayType


def type_of(array: UsmArray, dtype: Any, layout: str) -> Any:
    """Return the type of an array, given Numba's type of its elements and its layout."""
    from numba_dpex.core.types import DpctlSyclQueue

    return _array_type()(
        array.ndim,
        layout,
        dtype,
        array.usm_type,
        queue=DpctlSyclQueue(_shared_queue(array)),
        readonly=array.readonly,
    )
