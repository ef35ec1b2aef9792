//! Assignment to elements: `array[key] = value`.

use std::sync::Arc;

use crate::imports;
use crate::interpreter::intern;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PySlice, PyTuple};

use super::UsmArray;
use super::{create, cuda, host};
use crate::parse::{self, dtype};
use crate::transfer::{self, StridedCopy};
use zeusm::suai::Order;
use zeusm::usm::UsmKind;

/// The most bytes of a host array that are staged at once.
const STAGING: usize = 4 << 20;

#[pymethods]
impl UsmArray {
    /// Copies numbers, a host array or USM to the selected elements.
    ///
    /// NumPy converts host data and broadcasts it. USM must have the shape and the dtype of the selection, as the device does
    /// not compute; it may overlap the selection.
    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let target = slf.as_any().get_item(key)?.cast_into::<Self>()?;
        let inner = target.get();
        inner.memory().check_writable()?;
        host::check_distinct(&inner.layout)?;
        if let Some(source) = create::of_usm(value)? {
            check_same(inner, &source)?;
            return copy_usm(&source, &target);
        }
        if let Some(array) = parse::cuda::read(value)? {
            let binding = Arc::clone(&inner.memory().binding);
            let source = cuda::copied(value, &array, UsmKind::Device, binding, None)?;
            check_same(inner, &source)?;
            return copy_usm(&source, &target);
        }
        if inner.memory().kind.is_host_accessible() {
            return host::in_place(&target)?.set_item(PyEllipsis::get(slf.py()), value);
        }
        if inner.layout.nbytes() <= STAGING {
            return copy_staged(&target, value);
        }
        copy_staged(&target, &broadcast(inner, value)?)
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyValueError::new_err("cannot delete array elements"))
    }
}

fn check_same(target: &UsmArray, source: &UsmArray) -> PyResult<()> {
    if source.element == target.element && source.layout.shape() == target.layout.shape() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "USM of shape {:?} and dtype {} cannot be assigned to elements of shape {:?} and dtype {}: it is neither broadcast \
         nor converted",
        source.layout.shape(),
        dtype::name(&source.element),
        target.layout.shape(),
        dtype::name(&target.element),
    )))
}

/// Copies between arrays of the same shape and type, which may overlap.
fn copy_usm(source: &UsmArray, target: &Bound<'_, UsmArray>) -> PyResult<()> {
    let py = target.py();
    if (host::is_read_faster(py, &source.layout) || host::is_write_faster(py, &target.get().layout))
        && host::copy_through(source, target)?
    {
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
        let sides = StridedCopy::gather(
            source.memory().for_queue(py)?,
            target.first(memory.for_queue(py)?),
        );
        let operands = (source.pinned().share(py)?, target.pinned().share(py)?);
        // SAFETY: the operands own both sides of the same size, which the device can access.
        return unsafe { transfer::copy_strided(py, here, &source.layout, sides, operands) }
            .map(drop);
    }
    let binding = Arc::clone(&memory.binding);
    let packed = create::copied(py, source, UsmKind::Device, binding, Some(Order::RowMajor))?;
    let sides = StridedCopy::scatter(packed.memory().for_queue(py)?, memory.for_queue(py)?);
    let operands = (packed.pinned().share(py)?, target.pinned().share(py)?);
    // SAFETY: the operands own both sides of the same size, and the packed copy is in the target's context.
    unsafe { transfer::copy_strided(py, here, layout, sides, operands) }.map(drop)
}

/// A NumPy array of the target's shape with the elements of `value`, which are not repeated in memory.
fn broadcast<'py>(target: &UsmArray, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let numpy = imports::numpy(py)?;
    let mut source = value.clone();
    if !value.is_instance(&numpy.getattr("ndarray")?)? {
        // NumPy checks the range of Python's numbers, and takes a tuple for a record, only if it knows the type that they
        // are for.
        let dtype = dtype::object(py, &target.element)?;
        source = numpy.call_method1("asarray", (value, dtype))?;
    }
    let mut dimensions: Vec<usize> = source.getattr(intern!(py, "shape"))?.extract()?;
    while dimensions.len() > target.layout.ndim() && dimensions[0] == 1 {
        // An assignment ignores such dimensions, and `broadcast_to` does not.
        dimensions.remove(0);
        source = source.get_item(0)?;
    }
    let shape = PyTuple::new(py, target.layout.shape())?;
    numpy.call_method1("broadcast_to", (source, shape))
}

/// Copies what NumPy converts and broadcasts to the target, in parts of at most [`STAGING`] bytes. A source of several parts is
/// an array of the target's shape.
fn copy_staged(target: &Bound<'_, UsmArray>, source: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, inner) = (target.py(), target.get());
    let rows = inner.layout.shape().first().copied().unwrap_or(1);
    if inner.layout.nbytes() <= STAGING || inner.layout.ndim() == 0 {
        let (shape, dtype) = (
            PyTuple::new(py, inner.layout.shape())?,
            dtype::object(py, &inner.element)?,
        );
        let staged = imports::numpy(py)?.call_method1("empty", (shape, dtype))?;
        staged.set_item(PyEllipsis::get(py), source)?;
        return host::write(target, &staged);
    }
    let part = |key: &Bound<'_, PyAny>| -> PyResult<()> {
        let part = target.as_any().get_item(key)?.cast_into::<UsmArray>()?;
        copy_staged(&part, &source.get_item(key)?)
    };
    if rows == 1 {
        return part(PyInt::new(py, 0).as_any());
    }
    let (middle, end) = (rows.cast_signed() / 2, rows.cast_signed());
    part(PySlice::new(py, 0, middle, 1).as_any())?;
    part(PySlice::new(py, middle, end, 1).as_any())
}
