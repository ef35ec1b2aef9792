//! Copies between arrays and NumPy, for any strides on both sides.
//!
//! The host accesses host and shared memory in place. Device memory is copied to a destination of the same order in memory
//! directly, and to others through a staging buffer, from which NumPy reorders the elements.

use crate::imports;
use crate::interpreter::intern;
use pyo3::exceptions::{PyAttributeError, PyImportError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::class::{UsmArray, invalid};
use crate::parse::{BoolOrInt, HostBuffer, dtype};
use crate::shown::naming;
use zeusm::suai::{ElementType, Error, Layout};

#[pymethods]
impl UsmArray {
    /// The interface for NumPy to use host and shared memory in place; device memory has none.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_host_accessible()
            .map_err(PyAttributeError::new_err)?;
        array_interface(py, self)
    }

    /// The conversion to NumPy: a view of host and shared memory, and `TypeError` for device memory, of which `copy_to_host`
    /// returns a copy.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<BoolOrInt>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let accessible = slf.get().check_host_accessible();
        accessible.map_err(PyTypeError::new_err)?;
        as_numpy(slf, dtype, copy.map(|copy| copy.0))
    }

    /// The conversion to Arrow, of one dimension of host or shared memory, without a copy where Arrow supports that.
    #[pyo3(signature = (r#type=None))]
    fn __arrow_array__<'py>(
        slf: &Bound<'py, Self>,
        r#type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Self::__array__(slf, None, None)?;
        slf.py()
            .import("pyarrow")?
            .call_method1("array", (numpy, r#type))
    }

    /// Copies the array to the host.
    ///
    /// Parameters
    /// ----------
    /// obj : optional
    ///     A writable buffer of the same shape and dtype, with any strides; by default a new NumPy array.
    ///
    /// Returns
    /// -------
    /// object
    ///     `obj`, or a new `numpy.ndarray` with the memory order of the array.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `obj` has no buffer.
    /// ValueError
    ///     When it has another shape or dtype, or is read-only; nothing is written then.
    /// LevelZeroError
    ///     When the copy fails.
    ///
    /// Examples
    /// --------
    /// >>> import numpy, zeusm
    /// >>> array = zeusm.asarray([[1, 2], [3, 4]])
    /// >>> array.T.copy_to_host().tolist()
    /// [[1, 3], [2, 4]]
    /// >>> column = numpy.zeros(2, int)
    /// >>> array[:, 1].copy_to_host(column).tolist()
    /// [2, 4]
    #[pyo3(signature = (obj=None))]
    fn copy_to_host<'py>(
        slf: &Bound<'py, Self>,
        obj: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        read(slf, obj.filter(|obj| !obj.is_none()))
    }

    /// Copies from the host to the array; bytes between its elements are not written.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     Any object that NumPy converts to an array, of the same shape and dtype, with any strides.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When it has another shape or dtype, or the array is read-only or has overlapping elements; nothing is written
    ///     then.
    /// LevelZeroError
    ///     When the copy fails.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> array = zeusm.asarray([1, 2, 3, 4])
    /// >>> array[::2].copy_from_host([10, 30])
    /// >>> array.copy_to_host().tolist()
    /// [10, 2, 30, 4]
    fn copy_from_host(slf: &Bound<'_, Self>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        write(slf, obj)
    }
}

/// `__array_interface__` of an array that the host can access.
fn array_interface<'py>(py: Python<'py>, array: &UsmArray) -> PyResult<Bound<'py, PyDict>> {
    let memory = array.memory();
    let first = array.first(memory.for_host(py, array.extent())?);
    let dictionary = PyDict::new(py);
    dictionary.set_item("data", (first, memory.terms.is_read_only()))?;
    dictionary.set_item("shape", PyTuple::new(py, array.layout.shape())?)?;
    dictionary.set_item("typestr", array.element.typestr())?;
    if let Some(record) = array.element.record() {
        dictionary.set_item("descr", dtype::fields(py, record)?)?;
    }
    let strides = match array.layout.is_c_contiguous() {
        true => None,
        false => Some(PyTuple::new(py, array.layout.byte_strides())?),
    };
    dictionary.set_item("strides", strides)?;
    dictionary.set_item("version", 3)?;
    Ok(dictionary)
}

/// The NumPy array of an array that the host can access: a view, unless `dtype` or `copy` needs a copy.
fn as_numpy<'py>(
    array: &Bound<'py, UsmArray>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let numpy = imports::numpy(py)?;
    let view = in_place(array)?;
    let keywords = PyDict::new(py);
    keywords.set_item("copy", copy == Some(true))?;
    let as_it_is = dtype.is_none_or(Bound::is_none);
    let wanted = match dtype {
        Some(dtype) if !as_it_is => numpy.call_method1("dtype", (dtype,))?,
        _ => view.getattr("dtype")?,
    };
    if copy == Some(false) && !wanted.eq(view.getattr("dtype")?)? {
        return Err(naming(&wanted, |wanted| {
            PyValueError::new_err(format!(
                "an array of {} cannot be one of {wanted} without a copy",
                dtype::name(&array.get().element)
            ))
        }));
    }
    view.call_method("astype", (wanted,), Some(&keywords))
}

/// Copies the array to a new NumPy array, or to `destination`.
pub(super) fn read<'py>(
    array: &Bound<'py, UsmArray>,
    destination: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let inner = array.get();
    let to = match destination {
        None => None,
        Some(destination) => Some(writable(destination, inner)?),
    };
    let elements = if inner.memory().kind.is_host_accessible() {
        in_place(array)?
    } else if let Some(copy) = read_packed(py, inner, to.as_ref())? {
        return Ok(destination.map_or(copy, Bound::clone));
    } else {
        read_staged(py, inner)?
    };
    let (Some(destination), Some(to)) = (destination, to) else {
        return elements.call_method1("copy", ("K",));
    };
    copy_elements(&to, &elements)?;
    Ok(destination.clone())
}

/// Copies an array that the host cannot access to `to`, or else to a new NumPy array, if that has the elements in the order of
/// the array's memory, without gaps; `None` if the copy needs a staging buffer.
fn read_packed<'py>(
    py: Python<'py>,
    array: &UsmArray,
    to: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if is_short(&array.layout) {
        return Ok(None);
    }
    let (elements, packed) = array.layout.packed().map_err(|error| invalid(&error))?;
    let to = match to {
        Some(to) => to.clone(),
        None => {
            let order = match (packed.is_c_contiguous(), packed.is_f_contiguous()) {
                (true, _) => "C",
                (_, true) => "F",
                _ => return Ok(None),
            };
            let shape = PyTuple::new(py, packed.shape())?;
            let dtype = dtype::object(py, &array.element)?;
            imports::numpy(py)?.call_method1("empty", (shape, dtype, order))?
        }
    };
    let Some(bytes) = if_packed(&to, &packed)? else {
        return Ok(None);
    };
    gather(py, array, &elements, &bytes)?;
    Ok(Some(to))
}

/// Copies `source`, which NumPy converts to an array, to the array.
pub(super) fn write(array: &Bound<'_, UsmArray>, source: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    let inner = array.get();
    let source = imports::numpy(py)?.call_method1("asarray", (source,))?;
    let source = of_same(source, inner, "source")?;
    inner.memory().check_writable()?;
    if inner.layout.elements() == 0 {
        return Ok(());
    }
    check_distinct(&inner.layout)?;
    copy_arranged(array, &arranged(inner, source)?)
}

/// The elements of a NumPy array as [`copy_arranged`] takes them: where the device writes the array, they are in the order of its
/// memory, without gaps.
fn arranged<'py>(array: &UsmArray, source: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if array.memory().kind.is_host_accessible() {
        return Ok(source);
    }
    let (_, packed) = array.layout.packed().map_err(|error| invalid(&error))?;
    if let Some(bytes) = if_packed(&source, &packed)? {
        return Ok(bytes);
    }
    let (bytes, view) = staging(source.py(), &array.element, &packed, packed.nbytes())?;
    copy_elements(&view, &source)?;
    Ok(bytes)
}

/// Copies [`arranged`] elements to the array.
fn copy_arranged(array: &Bound<'_, UsmArray>, source: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, inner) = (array.py(), array.get());
    if inner.memory().kind.is_host_accessible() {
        return copy_elements(&in_place(array)?, source);
    }
    let (elements, _) = inner.layout.packed().map_err(|error| invalid(&error))?;
    let bytes = HostBuffer::readable(source)?;
    check_size(&bytes, &elements)?;
    let from = bytes.address();
    // SAFETY: the buffer has the elements' size.
    unsafe { inner.scatter(py, &elements, from, bytes) }
}

/// The bytes that the host copies three times in the time that a device takes for an operation.
const OPERATION: usize = 4 << 10;

/// The same for NumPy's calls.
const CALLS: usize = 64 * OPERATION;

/// Whether [`copy_through`] takes less time than the operations of a device that [`transfer::copy_strided`] needs for the layout
/// of a source, and NumPy is installed. A device copies rows of bytes upwards, so that reversed elements are an operation each.
pub(super) fn is_read_faster(py: Python<'_>, layout: &Layout) -> PyResult<bool> {
    is_faster(py, layout, staged(layout))
}

/// As [`is_read_faster`], for the layout of a target.
pub(super) fn is_write_faster(py: Python<'_>, layout: &Layout) -> PyResult<bool> {
    is_faster(py, layout, layout.packed())
}

/// `staged` is what is copied instead, and the layout in the host's buffer.
fn is_faster(
    py: Python<'_>,
    layout: &Layout,
    staged: Result<(Layout, Layout), Error>,
) -> PyResult<bool> {
    let Ok((in_memory, _)) = staged else {
        return Ok(false);
    };
    let operations = layout.regions().len();
    let avoided = operations.saturating_sub(in_memory.regions().len());
    if avoided.saturating_mul(OPERATION) <= layout.nbytes().saturating_add(CALLS) {
        return Ok(false);
    }
    match imports::numpy(py) {
        Err(error) if !error.is_instance_of::<PyImportError>(py) => Err(error),
        imported => Ok(imported.is_ok()),
    }
}

/// Copies the elements between arrays of the same shape and type in USM, which may overlap, through host memory. If there is not
/// enough of that, it copies nothing and returns `false`.
pub(super) fn copy_through(source: &UsmArray, target: &Bound<'_, UsmArray>) -> PyResult<bool> {
    let py = target.py();
    let elements = read_staged(py, source).and_then(|elements| arranged(target.get(), elements));
    match elements {
        Ok(elements) => copy_arranged(target, &elements).map(|()| true),
        Err(error) if error.is_instance_of::<PyMemoryError>(py) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses to write to an array that repeats elements.
pub(super) fn check_distinct(layout: &Layout) -> PyResult<()> {
    let repeats = |(&size, stride): (&usize, isize)| size > 1 && stride == 0;
    let strides = layout.byte_strides();
    if layout.elements() > 0 && layout.shape().iter().zip(strides).any(repeats) {
        return Err(PyValueError::new_err(
            "the array repeats elements (a stride is 0), so that it is not clear what to write to them",
        ));
    }
    Ok(())
}

/// What NumPy makes of an object: an array, its type, and a layout in the order of its memory. NumPy converts the elements to
/// `element`.
pub(super) fn converted<'py>(
    object: &Bound<'py, PyAny>,
    element: Option<&ElementType>,
) -> PyResult<(Bound<'py, PyAny>, ElementType, Layout)> {
    let py = object.py();
    let dtype = element.map(|element| dtype::object(py, element));
    let array = imports::numpy(py)?.call_method1("asarray", (object, dtype.transpose()?))?;
    let element = dtype::read(&array.getattr("dtype")?)?;
    let shape: Vec<i64> = array.getattr("shape")?.extract()?;
    let strides: Vec<i64> = array.getattr("strides")?.extract()?;
    let size = element.size() as i64;
    // Only the absolute values of the strides determine the order, and the division by the item size preserves it, also for
    // strides that are no multiple of it.
    let strides: Vec<i64> = strides.iter().map(|stride| stride.abs() / size).collect();
    let layout = Layout::new(&shape, Some(&strides), 0, element.size());
    let layout = layout.map_err(|error| invalid(&error))?;
    Ok((array, element, layout))
}

/// A NumPy view of an array that the host can access.
pub(super) fn in_place<'py>(array: &Bound<'py, UsmArray>) -> PyResult<Bound<'py, PyAny>> {
    imports::numpy(array.py())?.call_method1("asarray", (array,))
}

/// A new NumPy array with a copy of an array that the host cannot access.
fn read_staged<'py>(py: Python<'py>, array: &UsmArray) -> PyResult<Bound<'py, PyAny>> {
    let (in_memory, in_buffer) = staged(&array.layout).map_err(|error| invalid(&error))?;
    let (bytes, view) = staging(py, &array.element, &in_buffer, in_memory.nbytes())?;
    gather(py, array, &in_memory, &bytes)?;
    Ok(view)
}

/// What the device copies to a staging buffer, and the layout in that buffer.
fn staged(layout: &Layout) -> Result<(Layout, Layout), Error> {
    if is_short(layout) {
        layout.spanned()
    } else {
        layout.packed()
    }
}

/// Whether the bytes from the first element to the last one are copied, in one operation: elements may be repeated, which takes
/// an operation for each, and these bytes are few, or not more than those of the elements.
fn is_short(layout: &Layout) -> bool {
    !layout.is_distinct() && layout.extent().len() <= layout.nbytes().max(CALLS)
}

/// Checks that a buffer has the size of the elements: another thread may resize the caller's array.
fn check_size(bytes: &HostBuffer, elements: &Layout) -> PyResult<()> {
    match bytes.size() == elements.nbytes() {
        true => Ok(()),
        false => Err(PyValueError::new_err(
            "the host array was resized meanwhile",
        )),
    }
}

/// Copies the elements `in_memory` of an array that the host cannot access to a buffer of their size.
fn gather<'py>(
    py: Python<'py>,
    array: &UsmArray,
    in_memory: &Layout,
    bytes: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let bytes = HostBuffer::writable(bytes)?;
    check_size(&bytes, in_memory)?;
    let (here, to) = (array.memory().context_device(), bytes.address());
    // SAFETY: the buffer has the elements' size, and the array's own device can access it.
    unsafe { array.gather(py, here, in_memory, to, bytes) }.map(drop)
}

/// A staging buffer of `size` bytes, and a NumPy array over it with the layout `in_buffer`.
fn staging<'py>(
    py: Python<'py>,
    element: &ElementType,
    in_buffer: &Layout,
    size: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let numpy = imports::numpy(py)?;
    let bytes = numpy.call_method1("empty", (size, "|u1"))?;
    if in_buffer.elements() == 0 {
        let view = numpy.call_method1(
            "empty",
            (
                PyTuple::new(py, in_buffer.shape())?,
                dtype::object(py, element)?,
            ),
        )?;
        return Ok((bytes, view));
    }
    let view = numpy.call_method1(
        "ndarray",
        (
            PyTuple::new(py, in_buffer.shape())?,
            dtype::object(py, element)?,
            &bytes,
            in_buffer.byte_offset(),
            PyTuple::new(py, in_buffer.byte_strides())?,
        ),
    )?;
    Ok((bytes, view))
}

/// A C-contiguous view of the NumPy array, if that has the layout `packed`.
fn if_packed<'py>(
    array: &Bound<'py, PyAny>,
    packed: &Layout,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = array.py();
    let flags = array.getattr(intern!(py, "flags"))?;
    let is = |flag| flags.getattr(flag)?.extract::<bool>();
    if packed.is_c_contiguous() && is("c_contiguous")? {
        Ok(Some(array.clone()))
    } else if packed.is_f_contiguous() && is("f_contiguous")? {
        array.getattr(intern!(py, "T")).map(Some)
    } else {
        Ok(None)
    }
}

/// `destination` as a writable NumPy array.
fn writable<'py>(destination: &Bound<'py, PyAny>, array: &UsmArray) -> PyResult<Bound<'py, PyAny>> {
    let py = destination.py();
    let numpy = imports::numpy(py)?;
    // NumPy cannot read the format of its own records with bytes after the last field.
    let view = if destination.is_instance(&numpy.getattr("ndarray")?)? {
        destination.clone()
    } else {
        py.import("builtins")?
            .call_method1("memoryview", (destination,))?
    };
    let numpy = numpy.call_method1("asarray", (view,))?;
    let numpy = of_same(numpy, array, "destination")?;
    let flags = numpy.getattr(intern!(py, "flags"))?;
    if !flags.getattr("writeable")?.extract::<bool>()? {
        return Err(PyValueError::new_err("the destination is read-only"));
    }
    Ok(numpy)
}

/// The NumPy array, which must have the shape and the elements of `array`.
fn of_same<'py>(
    numpy: Bound<'py, PyAny>,
    array: &UsmArray,
    role: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let shape: Vec<usize> = numpy.getattr("shape")?.extract()?;
    if shape != array.layout.shape() {
        return Err(PyValueError::new_err(format!(
            "the {role} has the shape {shape:?}, the array {:?}",
            array.layout.shape()
        )));
    }
    let dtype = numpy.getattr("dtype")?;
    let is_same = match dtype::read(&dtype) {
        Ok(element) => element == array.element,
        Err(error) if error.is_instance_of::<PyTypeError>(numpy.py()) => false,
        Err(error) => return Err(error),
    };
    if !is_same {
        return Err(naming(&dtype, |dtype| {
            PyValueError::new_err(format!(
                "the {role} is of {dtype}, the array of {}: convert on the host first, for this is a copy of bytes",
                dtype::name(&array.element)
            ))
        }));
    }
    if array.element.record().is_none() {
        return Ok(numpy);
    }
    // Fields may have titles, and records a class of their own, which NumPy's copies compare.
    let dtype = dtype::object(numpy.py(), &array.element)?;
    numpy.call_method1("view", (dtype,))
}

/// NumPy's copy between arrays of the same shape and type; it releases the GIL.
///
/// Arrays that may overlap are copied through a temporary array: NumPy overwrites elements before it reads them in
/// `copyto(a[::2], a[:25])`.
fn copy_elements(to: &Bound<'_, PyAny>, from: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = to.py();
    let numpy = imports::numpy(py)?;
    let may_overlap = numpy.call_method1("may_share_memory", (to, from))?;
    let from = if may_overlap.is_truthy()? {
        &from.call_method1("copy", ("K",))?
    } else {
        from
    };
    numpy.call_method1("copyto", (to, from, "no")).map(drop)
}
