"""Support for `UsmArray` as an argument of numba-dpex's kernels, as for dpctl's arrays.

`zeusm._numba` imports this module when a program has imported numba-dpex and passes a `UsmArray` to a compiled function.
"""

from functools import cache
from typing import Any

from zeusm._numba import NOT_ACCESSIBLE, unboxing
from zeusm._zeusm import UsmArray, _shared_queue


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
def _array_type() -> Any:
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

    unbox(UsmArrayType)(unboxing(_as_dpctl, UsmArrayType.as_dpctl, queue_and_target))
    return UsmArrayType


def type_of(array: UsmArray, dtype: Any, layout: str) -> Any:
    """Return the type of an array, given Numba's type of its elements and its layout."""
    if array.dtype.names is not None:
        raise TypeError(
            f"numba-dpex takes no records; give it a field, one of {', '.join(array.dtype.names)}"
        )
    from numba_dpex.core.types import DpctlSyclQueue

    return _array_type()(
        array.ndim,
        layout,
        dtype,
        array.usm_type,
        queue=DpctlSyclQueue(_shared_queue(array)),
        readonly=array.readonly,
    )
