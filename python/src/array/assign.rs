//! Assignment to elements: `array[key] = value`, and `copy_to_device`, which assigns to another array.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::class::UsmArray;
use super::plan::{Asked, Plan};
use super::{adopt, host, make};
use crate::cuda::{self, Direction};
use crate::parse::{dtype, interface};
use crate::shown::class_name;
use zeusm::suai::{ElementType, Layout, Order};
use zeusm::usm::UsmKind;

#[pymethods]
impl UsmArray {
    /// Copies numbers, a host array or USM to the selected elements.
    ///
    /// NumPy converts host data and broadcasts it. USM is broadcast, too, and must have the dtype of the selection, as the device
    /// does not compute; it may overlap the selection.
    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let target = slf.as_any().get_item(key)?.cast_into::<Self>()?;
        let inner = target.get();
        inner._check_target()?;
        if let Some(source) = adopt::array(value)? {
            let source = broadcast(slf.py(), inner, &source)?;
            return copy_usm(&source, &target);
        }
        if let Some(array) = interface::read_cuda(value)? {
            let asked = Asked {
                binding: Some(Arc::clone(&inner.memory().binding)),
                ..Asked::default()
            };
            let (element, layout) = (array.element.clone(), array.layout.clone());
            let plan = Plan::elsewhere(slf.py(), asked, "CUDA memory", element, layout)?;
            let source = make::of_cuda(value, &plan, &array)?;
            let source = broadcast(slf.py(), inner, &source)?;
            return copy_usm(&source, &target);
        }
        host::assign(&target, value)
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyValueError::new_err("cannot delete array elements"))
    }

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
        if let Some(target) = adopt::array(obj)? {
            check_same(&target.element, &target.layout, source)?;
            let everything = py.Ellipsis().into_bound(py);
            return Bound::new(py, target)?.as_any().set_item(everything, slf);
        }
        let Some(target) = interface::read_cuda(obj)? else {
            return Err(PyTypeError::new_err(format!(
                "{} has neither __sycl_usm_array_interface__ nor __cuda_array_interface__",
                class_name(obj)
            )));
        };
        check_same(&target.element, &target.layout, source)?;
        if target.read_only {
            return Err(PyValueError::new_err("the destination is read-only"));
        }
        host::check_distinct(&target.layout)?;
        let packed = if source.layout.is_c_contiguous() {
            source.share(py)?
        } else {
            let order = Some(Order::RowMajor);
            let plan = Plan {
                order,
                ..Plan::copy_of(source)
            };
            make::copy(py, &plan, source)?
        };
        let memory = packed.memory();
        let (here, from) = (memory.context_device(), packed.first(memory.for_queue(py)?));
        let operands = (obj.clone().unbind(), packed.pinned().share(py)?);
        // SAFETY: the operands own both sides, which have the same size.
        unsafe {
            let (to, elements) = (Direction::ToCuda, &target.layout);
            cuda::copy(py, to, &target, elements, here, from, operands)
        }
        .map(drop)
    }
}

/// Refuses a destination of another shape or type.
fn check_same(element: &ElementType, layout: &Layout, source: &UsmArray) -> PyResult<()> {
    if *element == source.element && layout.shape() == source.layout.shape() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "the destination has the shape {:?} and dtype {}, the array {:?} and {}: it is neither broadcast nor converted",
        layout.shape(),
        dtype::name(element),
        source.layout.shape(),
        dtype::name(&source.element),
    )))
}

/// The source with the shape of the target.
fn broadcast(py: Python<'_>, target: &UsmArray, source: &UsmArray) -> PyResult<UsmArray> {
    if source.element == target.element
        && let Some(layout) = source.layout.broadcast(target.layout.shape())
    {
        return source.with(py, layout);
    }
    Err(PyValueError::new_err(format!(
        "USM of shape {:?} and dtype {} cannot be assigned to elements of shape {:?} and dtype {}: it cannot be broadcast to \
         that shape, or needs to be converted, which a package that computes does",
        source.layout.shape(),
        dtype::name(&source.element),
        target.layout.shape(),
        dtype::name(&target.element),
    )))
}

/// Copies between arrays of the same shape and type, which may overlap.
fn copy_usm(source: &UsmArray, target: &Bound<'_, UsmArray>) -> PyResult<()> {
    let py = target.py();
    let is_faster = host::is_faster(py, &source.layout, false)?
        || host::is_faster(py, &target.get().layout, true)?;
    if is_faster && host::copy_through(source, target)? {
        return Ok(());
    }
    let target = target.get();
    let (memory, layout) = (target.memory(), &target.layout);
    let here = memory.context_device();
    let (is, from) = (target.extent(), source.extent());
    let is_disjoint = is.end <= from.start || from.end <= is.start;
    let there = source.memory();
    let is_accessible = here.can_access(there.context_device(), there.kind);
    if is_disjoint && is_accessible && layout.is_c_contiguous() {
        let to = target.first(memory.for_queue(py)?);
        let owner = target.pinned().share(py)?;
        // SAFETY: the target has the elements' size, and its device can access the source.
        return unsafe { source.copy_packed(py, here, &source.layout, to, false, owner) }.map(drop);
    }
    let plan = Plan {
        kind: UsmKind::Device,
        binding: Arc::clone(&memory.binding),
        order: Some(Order::RowMajor),
        ..Plan::copy_of(source)
    };
    let packed = make::copy(py, &plan, source)?;
    let (from, owner) = (packed.memory().for_queue(py)?, packed.pinned().share(py)?);
    // SAFETY: the packed copy has the elements' size, and is in the target's context.
    unsafe { target.copy_packed(py, here, layout, from, true, owner) }.map(drop)
}
