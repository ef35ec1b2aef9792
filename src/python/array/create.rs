//! New arrays: empty ones, and copies of others.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::class::invalid;
use super::{UsmArray, blocks, dtype, exchange, host, shape};
use crate::python::construct::allocate;
use crate::python::memory::PyMemory;
use crate::python::spot::Spot;
use crate::python::{interface, kinds, transfer};
use crate::suai::{ItemType, Layout, Order};
use crate::usm::UsmKind;

/// A new array whose elements hold whatever the memory holds.
///
/// Parameters
/// ----------
/// shape : int or sequence of int
///     The dimensions.
/// dtype : optional
///     Whatever NumPy takes for one; float64 by default.
/// usm_type : str
///     'device', 'shared' or 'host'.
/// device, queue : optional
///     One of them: a `dpctl.SyclQueue`, `SyclContext` or `SyclDevice`, a filter string or a capsule that names where to
///     allocate.
/// order : str
///     'C' for row-major, 'F' for column-major.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// USMAllocationError
///     When there is no such memory.
/// ValueError, TypeError
///     For arguments of a wrong value or type.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> zeusm.empty((2, 3), "float32", usm_type="shared").nbytes
/// 24
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, usm_type="device", device=None, queue=None, order="C"))]
pub(in crate::python) fn empty(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    usm_type: &str,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    order: &str,
) -> PyResult<UsmArray> {
    let py = shape.py();
    let item = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => dtype::read(dtype)?,
        None => "f8".parse()?,
    };
    let kind = kinds::named(usm_type)?;
    let shape = shape::integers(shape, "shape")?;
    let layout = Layout::contiguous(&shape, shape::order(order)?, item.size())
        .map_err(|error| invalid(&error))?;
    let spot = spot(device, queue)?.map_or_else(|| Spot::default_one(py), Ok)?;
    allocated(py, item, layout, kind, spot)
}

/// An array in USM of whatever is given: the same memory when that is USM of the wanted kind and place, else a copy.
///
/// Parameters
/// ----------
/// obj
///     An object with `__sycl_usm_array_interface__`, or whatever NumPy makes an array of.
/// dtype : optional
///     The type to which NumPy converts data of the host. USM is not converted: it must have this type.
/// usm_type : str, optional
///     'device', 'shared' or 'host'; by default the kind of `obj`, and 'device' for data of the host.
/// device, queue : optional
///     One of them, as for `empty`; by default where `obj` is.
/// order : str, optional
///     'C' or 'F' for data of the host; by default as it lies.
/// copy : bool, optional
///     None for a copy where one is needed, False for none in any case, True for one.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// ValueError
///     When `copy` is False and a copy is needed, or an argument has a wrong value.
/// TypeError
///     For elements of a type that arrays do not have, or USM of another type than `dtype`.
/// USMAllocationError
///     When there is no such memory.
///
/// Examples
/// --------
/// >>> import numpy, zeusm
/// >>> array = zeusm.asarray(numpy.eye(2), usm_type="shared")
/// >>> numpy.asarray(array).tolist()
/// [[1.0, 0.0], [0.0, 1.0]]
#[pyfunction]
#[pyo3(signature = (obj, dtype=None, *, usm_type=None, device=None, queue=None, order=None, copy=None))]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
pub(in crate::python) fn asarray(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    usm_type: Option<&str>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    order: Option<&str>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    let dtype = dtype.filter(|dtype| !dtype.is_none());
    let wanted = usm_type.map(kinds::named).transpose()?;
    let spot = spot(device, queue)?;
    match of_usm(obj)? {
        Some(array) => {
            let item = dtype.map(dtype::read).transpose()?;
            if item.is_some_and(|item| item != array.item) {
                return Err(PyTypeError::new_err(format!(
                    "USM of type {} is not converted to {}: that is computing",
                    dtype::name(array.item),
                    item.map(dtype::name).unwrap_or_default(),
                )));
            }
            let order = order.map(shape::order).transpose()?;
            placed(obj.py(), array, wanted, spot, order, copy)
        }
        None if copy == Some(false) => Err(PyValueError::new_err(
            "data of the host cannot become USM without a copy",
        )),
        None => {
            let kind = wanted.unwrap_or(UsmKind::Device);
            of_host(obj, dtype, kind, spot, order)
        }
    }
}

/// The array that an object already has in USM.
fn of_usm(obj: &Bound<'_, PyAny>) -> PyResult<Option<UsmArray>> {
    let py = obj.py();
    if let Ok(array) = obj.cast::<UsmArray>() {
        return array.get().share(py).map(Some);
    }
    if interface::dictionary(obj)?.is_none() {
        return Ok(None);
    }
    exchange::as_usm_array(obj).map(Some)
}

/// The array itself if it is of that kind, there and in that order, else a copy that is.
pub(super) fn placed(
    py: Python<'_>,
    array: UsmArray,
    kind: Option<UsmKind>,
    spot: Option<Arc<Spot>>,
    order: Option<Order>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    let memory = array.memory();
    let is_there = |spot: &Arc<Spot>| {
        spot.place().shares_context(memory.place())
            && spot.place().device() == memory.place().device()
    };
    let fits = kind.is_none_or(|kind| kind == memory.kind)
        && spot.as_ref().is_none_or(is_there)
        && match order {
            None => true,
            Some(Order::RowMajor) => array.layout.is_c_contiguous(),
            Some(Order::ColumnMajor) => array.layout.is_f_contiguous(),
        };
    match copy {
        Some(false) if !fits => Err(PyValueError::new_err(format!(
            "the array is in USM-{} memory on {}; a copy is needed and copy is False",
            memory.kind,
            memory.place().device().name()
        ))),
        Some(false) | None if fits => Ok(array),
        _ => {
            let kind = kind.unwrap_or(memory.kind);
            let spot = spot.unwrap_or_else(|| Arc::clone(&memory.spot));
            copied(py, &array, kind, spot, order)
        }
    }
}

fn of_host(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: UsmKind,
    spot: Option<Arc<Spot>>,
    order: Option<&str>,
) -> PyResult<UsmArray> {
    let py = obj.py();
    let keywords = PyDict::new(py);
    keywords.set_item("dtype", dtype)?;
    keywords.set_item("order", order)?;
    let source = py
        .import("numpy")?
        .call_method("asarray", (obj,), Some(&keywords))?;
    let item = dtype::read(&source.getattr("dtype")?)?;
    let layout = host::packed_like(&source, item)?;
    let spot = spot.map_or_else(|| Spot::default_one(py), Ok)?;
    let array = Bound::new(py, allocated(py, item, layout, kind, spot)?)?;
    host::write(&array, &source)?;
    array.get().share(py)
}

/// A copy of `array`: in the given order, or in the one in which its elements lie.
pub(super) fn copied(
    py: Python<'_>,
    array: &UsmArray,
    kind: UsmKind,
    spot: Arc<Spot>,
    order: Option<Order>,
) -> PyResult<UsmArray> {
    let source = array.memory();
    let layout = &array.layout;
    let (elements, packed) = in_order(layout, order)?;
    let copy = allocated(py, array.item, packed, kind, spot)?;
    let from = source.for_queue(py)?;
    let (here, to) = (copy.memory().place(), copy.memory().for_queue(py)?);
    let operands = (array.in_use().share(py)?, copy.in_use().share(py)?);
    if here.context() == source.place().context() {
        // SAFETY: the operands are both sides, the copy is as large as the elements, and the context is one.
        unsafe { blocks::gather(py, here, from, &elements, to, operands) }?;
        return Ok(copy);
    }
    // Packed where it is, if it is not yet, for the way to another context goes in one row.
    let there = source.place();
    let (from, operands) = if elements.is_c_contiguous() {
        let first = from.wrapping_add_signed(elements.byte_offset());
        (first, (operands, None))
    } else {
        let spot = Arc::clone(&source.spot);
        let packed = allocate(py, UsmKind::Device, layout.nbytes(), 0, spot)?;
        let middle = packed.for_queue(py)?;
        let operands = (operands, Some(packed));
        // SAFETY: as above, in the source's context.
        let operands = unsafe { blocks::gather(py, there, from, &elements, middle, operands) }?;
        (middle, operands)
    };
    let size = layout.nbytes();
    // SAFETY: as above, from one context to the other.
    unsafe { transfer::copy_between(py, here, to, there, from, size, false, operands) }?;
    Ok(copy)
}

/// A copy where `array` is, contiguous in the given order.
pub(super) fn copied_in_order(
    py: Python<'_>,
    array: &UsmArray,
    order: Order,
) -> PyResult<UsmArray> {
    let memory = array.memory();
    copied(
        py,
        array,
        memory.kind,
        Arc::clone(&memory.spot),
        Some(order),
    )
}

/// A copy in USM of host memory that some layout describes.
///
/// # Safety
/// `owner` must keep all that `layout` touches from `from` on.
pub(super) unsafe fn copied_from_host(
    py: Python<'_>,
    from: usize,
    item: ItemType,
    layout: &Layout,
    spot: Arc<Spot>,
    owner: impl Send + 'static,
) -> PyResult<UsmArray> {
    let (elements, packed) = in_order(layout, None)?;
    let copy = allocated(py, item, packed, UsmKind::Device, spot)?;
    let (place, to) = (copy.memory().place(), copy.memory().for_queue(py)?);
    let operands = (owner, copy.in_use().share(py)?);
    // SAFETY: the caller vouches for the source; the copy is as large as the elements.
    unsafe { blocks::gather(py, place, from, &elements, to, operands) }?;
    Ok(copy)
}

/// A layout whose row-major order is the wanted one, and the one, with the indices of `layout`, of the packed result.
fn in_order(layout: &Layout, order: Option<Order>) -> PyResult<(Layout, Layout)> {
    let shape: Vec<i64> = layout.shape().iter().map(|&size| size as i64).collect();
    let contiguous = |order| Layout::contiguous(&shape, order, layout.itemsize());
    let found = match order {
        None => layout.packed(),
        Some(Order::RowMajor) => contiguous(Order::RowMajor).map(|copy| (layout.clone(), copy)),
        Some(Order::ColumnMajor) => layout
            .reversed()
            .and_then(|elements| Ok((elements, contiguous(Order::ColumnMajor)?))),
    };
    found.map_err(|error| invalid(&error))
}

/// A new array in memory of its own, of one element at least: other packages cannot take an array without any memory.
/// `layout` is packed.
fn allocated(
    py: Python<'_>,
    item: ItemType,
    layout: Layout,
    kind: UsmKind,
    spot: Arc<Spot>,
) -> PyResult<UsmArray> {
    let size = layout.nbytes().max(item.size());
    let memory = object(py, allocate(py, kind, size, 0, spot)?)?;
    UsmArray::new(&memory, item, layout)
}

/// The Python object of some memory.
pub(super) fn object(py: Python<'_>, memory: PyMemory) -> PyResult<Bound<'_, PyMemory>> {
    Ok(kinds::object(py, memory)?.cast_into::<PyMemory>()?)
}

/// Where `device` or `queue` says, which are two names of one argument.
fn spot(
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Arc<Spot>>> {
    match (
        device.filter(|device| !device.is_none()),
        queue.filter(|queue| !queue.is_none()),
    ) {
        (Some(_), Some(_)) => Err(PyTypeError::new_err(
            "give either device or queue, not both",
        )),
        (Some(given), None) | (None, Some(given)) => Spot::read(given, "queue").map(Some),
        (None, None) => Ok(None),
    }
}
