//! Copies between arrays and CUDA memory.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{UsmArray, create, host};
use crate::cuda::{self, Direction};
use crate::parse::{self, dtype};
use crate::resolve::QueueBinding;
use zeusm::cuda::Interface;
use zeusm::suai::Order;
use zeusm::usm::UsmKind;

/// A copy in USM of an array in CUDA memory, which `owner` keeps alive: in the given order, or else in its own memory order.
pub(super) fn copied(
    owner: &Bound<'_, PyAny>,
    array: &Interface,
    kind: UsmKind,
    binding: Arc<QueueBinding>,
    order: Option<Order>,
) -> PyResult<UsmArray> {
    let py = owner.py();
    if !dtype::is_supported(&array.element) {
        return Err(PyTypeError::new_err(dtype::unsupported(&array.element)));
    }
    let (elements, packed) = create::in_order(&array.layout, order)?;
    let copy = create::allocated(py, array.element.clone(), packed, kind, binding)?;
    let (context_device, to) = (copy.memory().context_device(), copy.memory().for_queue(py)?);
    let operands = (owner.clone().unbind(), copy.pinned().share(py)?);
    // SAFETY: the operands own both sides, which have the same size.
    unsafe {
        cuda::copy(
            py,
            Direction::ToUsm,
            array,
            &elements,
            context_device,
            to,
            operands,
        )
    }?;
    Ok(copy)
}

#[pymethods]
impl UsmArray {
    /// Copies the array to an array of another device: in USM, or in CUDA memory, which is no USM.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     An object with `__sycl_usm_array_interface__` or `__cuda_array_interface__`, of the same shape and dtype, with any
    ///     strides.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When it has neither interface.
    /// ValueError
    ///     When it has another shape or dtype, or is read-only or has overlapping elements; nothing is written then.
    /// RuntimeError
    ///     When the copy fails, or CUDA's driver library cannot be opened.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> there = zeusm.empty((2, 2), "int64", usm_type="host")
    /// >>> zeusm.asarray([[1, 2], [3, 4]]).copy_to_device(there.T)
    /// >>> there.copy_to_host().tolist()
    /// [[1, 3], [2, 4]]
    fn copy_to_device(slf: &Bound<'_, Self>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, source) = (slf.py(), slf.get());
        if let Some(target) = create::of_usm(obj)? {
            let everything = py.Ellipsis().into_bound(py);
            return Bound::new(py, target)?.as_any().set_item(everything, slf);
        }
        let Some(target) = parse::cuda::read(obj)? else {
            return Err(PyTypeError::new_err(format!(
                "{} has neither __sycl_usm_array_interface__ nor __cuda_array_interface__",
                obj.get_type().name()?
            )));
        };
        if target.element != source.element || target.layout.shape() != source.layout.shape() {
            return Err(PyValueError::new_err(format!(
                "the destination has the shape {:?} and dtype {}, the array {:?} and {}: it is neither broadcast nor \
                 converted",
                target.layout.shape(),
                dtype::name(&target.element),
                source.layout.shape(),
                dtype::name(&source.element),
            )));
        }
        if target.read_only {
            return Err(PyValueError::new_err("the destination is read-only"));
        }
        host::check_distinct(&target.layout)?;
        let packed = if source.layout.is_c_contiguous() {
            source.share(py)?
        } else {
            create::copied_in_order(py, source, Order::RowMajor)?
        };
        let memory = packed.memory();
        let from = packed.first(memory.for_queue(py)?);
        let operands = (obj.clone().unbind(), packed.pinned().share(py)?);
        // SAFETY: the operands own both sides, which have the same size.
        unsafe {
            cuda::copy(
                py,
                Direction::ToCuda,
                &target,
                &target.layout,
                memory.context_device(),
                from,
                operands,
            )
        }
        .map(drop)
    }
}
