//! New arrays: empty ones, and copies of others.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::class::invalid;
use super::{UsmArray, cuda, host, interface};
use crate::allocate::Request;
use crate::errors::OrRaise;
use crate::imports;
use crate::memory::{as_memory, object};
use crate::parse::{self, dtype, shape, usm_kind};
use crate::pool::AllocationSource;
use crate::resolve::{self, ContextDevice, QueueBinding, default_binding};
use crate::transfer::{self, StridedCopy};
use zeusm::suai::{ElementType, Layout, Order};
use zeusm::usm::UsmKind;

/// A new array of uninitialized elements.
///
/// Parameters
/// ----------
/// shape : int or sequence of int
///     The dimensions.
/// dtype : optional
///     Any object that NumPy accepts as a dtype; float64 by default.
/// usm_type : str
///     'device', 'shared' or 'host'.
/// device, queue : optional
///     At most one of them: a `dpctl.SyclQueue`, `SyclContext` or `SyclDevice`, a filter string or a capsule, which
///     determines the context and the device.
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
///     When the allocation fails.
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
pub(crate) fn empty(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    usm_type: &str,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    order: &str,
) -> PyResult<UsmArray> {
    let py = shape.py();
    let element = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => dtype::read(dtype)?,
        None => ElementType::Item("f8".parse().or_raise()?),
    };
    let kind = usm_kind(usm_type)?;
    let shape = shape::integers(shape, "shape")?;
    let layout = Layout::contiguous(&shape, shape::order(order)?, element.size())
        .map_err(|error| invalid(&error))?;
    let binding = binding(device, queue)?.map_or_else(|| default_binding(py).cloned(), Ok)?;
    allocated(py, element, layout, kind, binding)
}

/// An array in USM with the elements of `obj`: a view if that is USM of the requested kind and device, else a copy.
///
/// Parameters
/// ----------
/// obj
///     An object with `__sycl_usm_array_interface__` or `__cuda_array_interface__`, or any object that NumPy converts to an
///     array. CUDA memory is no USM, so it is copied, through host memory.
/// dtype : optional
///     The element type. NumPy converts host data to it; USM is not converted and must have this type.
/// usm_type : str, optional
///     'device', 'shared' or 'host'; by default the kind of `obj`, and 'device' for host data.
/// device, queue : optional
///     At most one of them, as for `empty`; by default the context and device of `obj`.
/// order : str, optional
///     'C' or 'F' for host data; by default its own memory order.
/// copy : bool, optional
///     None: copy only if needed; False: never copy; True: always copy.
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
///     For elements of an unsupported type, or USM of another type than `dtype`.
/// USMAllocationError
///     When the allocation fails.
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
pub(crate) fn asarray(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    usm_type: Option<&str>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    order: Option<&str>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    let dtype = dtype.filter(|dtype| !dtype.is_none());
    let wanted = usm_type.map(usm_kind).transpose()?;
    let binding = binding(device, queue)?;
    match of_usm(obj)? {
        Some(array) => {
            let element = dtype.map(dtype::read).transpose()?;
            if let Some(element) = element
                && element != array.element
            {
                return Err(not_converted("USM", &array.element, &element));
            }
            let order = order.map(shape::order).transpose()?;
            placed(obj.py(), array, wanted, binding, order, copy)
        }
        None if copy == Some(false) => Err(PyValueError::new_err(
            "data of the host, or of CUDA, cannot become USM without a copy",
        )),
        None if parse::cuda::is_cuda(obj)? => {
            let element = dtype.map(dtype::read).transpose()?;
            of_cuda(obj, element, wanted, binding, order)
        }
        None => {
            let kind = wanted.unwrap_or(UsmKind::Device);
            of_host(obj, dtype, kind, binding, order)
        }
    }
}

/// The array of an object of zeusm itself, whose interface is not read: reading it marks the memory as exported, and needs
/// SYCL. A memory object is a one-dimensional array of its bytes.
pub(super) fn own(obj: &Bound<'_, PyAny>) -> PyResult<Option<UsmArray>> {
    if let Ok(array) = obj.cast::<UsmArray>() {
        return array.get().share(obj.py()).map(Some);
    }
    as_memory(obj)?.map(UsmArray::bytes).transpose()
}

/// The array of an object that is in USM already.
pub(super) fn of_usm(obj: &Bound<'_, PyAny>) -> PyResult<Option<UsmArray>> {
    if let Some(array) = own(obj)? {
        return Ok(Some(array));
    }
    let dictionary = parse::interface::dictionary(obj)?;
    dictionary
        .map(|dictionary| interface::described(obj, &dictionary))
        .transpose()
}

/// The array itself, on the requested queue, if it has the requested kind, context, device and order, else a copy.
pub(super) fn placed(
    py: Python<'_>,
    array: UsmArray,
    kind: Option<UsmKind>,
    binding: Option<Arc<QueueBinding>>,
    order: Option<Order>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    let memory = array.memory();
    let fits = kind.is_none_or(|kind| kind == memory.kind)
        && binding
            .as_ref()
            .is_none_or(|binding| is_same(memory.context_device(), binding))
        && match order {
            None => true,
            Some(Order::RowMajor) => array.layout.is_c_contiguous(),
            Some(Order::ColumnMajor) => array.layout.is_f_contiguous(),
        };
    match copy {
        Some(false) if !fits => Err(PyValueError::new_err(needs_copy(
            memory.kind,
            memory.context_device(),
        ))),
        Some(false) | None if fits => match binding.filter(|binding| !memory.is_on(binding)) {
            Some(binding) => on_queue(py, &array, binding),
            None => Ok(array),
        },
        _ => {
            let kind = kind.unwrap_or(memory.kind);
            let binding = binding.unwrap_or_else(|| Arc::clone(&memory.binding));
            copied(py, &array, kind, binding, order)
        }
    }
}

/// The same array with another queue of its context.
fn on_queue(py: Python<'_>, array: &UsmArray, binding: Arc<QueueBinding>) -> PyResult<UsmArray> {
    let memory = array.memory().share(py)?.on_queue(py, binding)?;
    UsmArray::new(
        &object(py, memory)?,
        array.element.clone(),
        array.layout.clone(),
    )
}

/// Whether memory is in the context and on the device of a binding.
pub(super) fn is_same(own: &ContextDevice, binding: &QueueBinding) -> bool {
    let given = binding.context_device();
    own.shares_context(given) && own.device() == given.device()
}

/// The message of a refused copy.
pub(super) fn needs_copy(kind: UsmKind, at: &ContextDevice) -> String {
    let device = at.device();
    format!("the array is in USM-{kind} memory on {device}; a copy is needed and copy is False")
}

fn of_cuda(
    obj: &Bound<'_, PyAny>,
    element: Option<ElementType>,
    kind: Option<UsmKind>,
    binding: Option<Arc<QueueBinding>>,
    order: Option<&str>,
) -> PyResult<UsmArray> {
    let py = obj.py();
    let array = parse::cuda::read(obj)?
        .ok_or_else(|| PyValueError::new_err("the __cuda_array_interface__ has gone"))?;
    if let Some(element) = element
        && element != array.element
    {
        return Err(not_converted("CUDA memory", &array.element, &element));
    }
    let binding = binding.map_or_else(|| default_binding(py).cloned(), Ok)?;
    let order = order.map(shape::order).transpose()?;
    cuda::copied(obj, &array, kind.unwrap_or(UsmKind::Device), binding, order)
}

/// The error for elements of another type than requested.
fn not_converted(memory: &str, from: &ElementType, to: &ElementType) -> PyErr {
    PyTypeError::new_err(format!(
        "{memory} of type {} is not converted to {}: that is computing",
        dtype::name(from),
        dtype::name(to),
    ))
}

fn of_host(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    kind: UsmKind,
    binding: Option<Arc<QueueBinding>>,
    order: Option<&str>,
) -> PyResult<UsmArray> {
    let py = obj.py();
    let keywords = PyDict::new(py);
    keywords.set_item("dtype", dtype)?;
    keywords.set_item("order", order)?;
    let source = imports::numpy(py)?.call_method("asarray", (obj,), Some(&keywords))?;
    let element = dtype::read(&source.getattr("dtype")?)?;
    let layout = host::packed_like(&source, &element)?;
    let binding = binding.map_or_else(|| default_binding(py).cloned(), Ok)?;
    let array = Bound::new(py, allocated(py, element, layout, kind, binding)?)?;
    host::write(&array, &source)?;
    array.get().share(py)
}

/// A copy of `array`: in the given order, or else in its own memory order.
pub(super) fn copied(
    py: Python<'_>,
    array: &UsmArray,
    kind: UsmKind,
    binding: Arc<QueueBinding>,
    order: Option<Order>,
) -> PyResult<UsmArray> {
    let source = array.memory();
    let layout = &array.layout;
    let (elements, packed) = in_order(layout, order)?;
    let mut copy = allocated(py, array.element.clone(), packed, kind, binding)?;
    if host::is_read_faster(py, &elements) {
        let target = Bound::new(py, copy)?;
        let is_copied = host::copy_through(array, &target)?;
        copy = target.get().share(py)?;
        if is_copied {
            return Ok(copy);
        }
    }
    let from = source.for_queue(py)?;
    let (here, to) = (copy.memory().context_device(), copy.memory().for_queue(py)?);
    let operands = (array.pinned().share(py)?, copy.pinned().share(py)?);
    if here.can_access(source.context_device(), source.kind) {
        // SAFETY: the operands own both sides of the same size, which the device can access.
        unsafe {
            transfer::copy_strided(py, here, &elements, StridedCopy::gather(from, to), operands)
        }?;
        return Ok(copy);
    }
    // The elements are packed by the array's own device first, as peer copies support contiguous bytes only.
    let there = source.context_device();
    let (from, operands) = if elements.is_c_contiguous() {
        let first = from.wrapping_add_signed(elements.byte_offset());
        (first, (operands, None))
    } else {
        let binding = Arc::clone(&source.binding);
        let packed = Request {
            source: AllocationSource::Default,
            kind: UsmKind::Device,
            size: layout.nbytes(),
            alignment: 0,
            binding: binding.into(),
        };
        let packed = packed.allocate(py)?;
        let middle = packed.for_queue(py)?;
        let operands = (operands, Some(packed));
        // SAFETY: as above, on the source's device.
        let operands = unsafe {
            transfer::copy_strided(
                py,
                there,
                &elements,
                StridedCopy::gather(from, middle),
                operands,
            )
        }?;
        (middle, operands)
    };
    let size = layout.nbytes();
    // SAFETY: as above, with a context and device for each side.
    unsafe { transfer::copy_peer(py, here, to, there, from, size, false, operands) }?;
    Ok(copy)
}

/// A copy in the same context and device, contiguous in the given order.
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
        Arc::clone(&memory.binding),
        Some(order),
    )
}

/// A copy in USM of host memory with the given layout, whose owner `own` takes once the copy has memory.
///
/// # Safety
/// What `own` returns must keep the extent of `layout` at `from` valid.
pub(super) unsafe fn copied_from_host<T: Send + 'static>(
    py: Python<'_>,
    from: usize,
    element: ElementType,
    layout: &Layout,
    binding: Arc<QueueBinding>,
    own: impl FnOnce() -> PyResult<T>,
) -> PyResult<UsmArray> {
    let (elements, packed) = in_order(layout, None)?;
    let copy = allocated(py, element, packed, UsmKind::Device, binding)?;
    let (context_device, to) = (copy.memory().context_device(), copy.memory().for_queue(py)?);
    let operands = (own()?, copy.pinned().share(py)?);
    // SAFETY: the caller guarantees that the source is valid; the copy is as large as the elements.
    unsafe {
        transfer::copy_strided(
            py,
            context_device,
            &elements,
            StridedCopy::gather(from, to),
            operands,
        )
    }?;
    Ok(copy)
}

/// The layout with its dimensions permuted so that its row-major order is `order`, and the layout of the packed result with
/// the indices of `layout`.
pub(super) fn in_order(layout: &Layout, order: Option<Order>) -> PyResult<(Layout, Layout)> {
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

/// A new array in a new allocation. The allocation has room for at least one element, as other packages cannot import an
/// array without memory. `layout` must be packed.
pub(super) fn allocated(
    py: Python<'_>,
    element: ElementType,
    layout: Layout,
    kind: UsmKind,
    binding: Arc<QueueBinding>,
) -> PyResult<UsmArray> {
    let request = Request {
        source: AllocationSource::Default,
        kind,
        size: layout.nbytes().max(element.size()),
        alignment: 0,
        binding: binding.into(),
    };
    let memory = request.allocate_then(py, |memory| object(py, memory))?;
    UsmArray::new(&memory, element, layout)
}

/// The queue binding of `device` or `queue`, which are synonyms of one argument.
fn binding(
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Arc<QueueBinding>>> {
    match (
        device.filter(|device| !device.is_none()),
        queue.filter(|queue| !queue.is_none()),
    ) {
        (Some(_), Some(_)) => Err(PyTypeError::new_err(
            "give either device or queue, not both",
        )),
        (Some(device), None) => resolve::binding(device, "device").map(Some),
        (None, Some(queue)) => resolve::binding(queue, "queue").map(Some),
        (None, None) => Ok(None),
    }
}
