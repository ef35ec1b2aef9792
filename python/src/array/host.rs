//! Copies between arrays and NumPy: the decisions, and the copies on the device. What NumPy does is in `zeusm/_host.py`.

use once_cell::race::OnceBox;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyAttributeError, PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::class::UsmArray;
use crate::errors::OrRaise;
use crate::imports;
use crate::parse::{BoolOrInt, HostBuffer, dtype};
use zeusm::suai::{ElementType, Error, ItemType, Layout};

#[pymethods]
impl UsmArray {
    /// The interface for NumPy to use host and shared memory in place; device memory has none.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_host_accessible()
            .and_then(|()| self.check_typestr())
            .map_err(PyAttributeError::new_err)?;
        let memory = self.memory();
        let first = self.first(memory.for_host(py, self.extent())?);
        let dictionary = PyDict::new(py);
        dictionary.set_item("data", (first, memory.terms.is_read_only()))?;
        dictionary.set_item("shape", PyTuple::new(py, self.layout.shape())?)?;
        dictionary.set_item("typestr", self.element.typestr())?;
        if let Some(record) = self.element.record() {
            dictionary.set_item("descr", dtype::fields(py, record)?)?;
        }
        let strides = match self.layout.is_c_contiguous() {
            true => None,
            false => Some(PyTuple::new(py, self.layout.byte_strides())?),
        };
        dictionary.set_item("strides", strides)?;
        dictionary.set_item("version", 3)?;
        Ok(dictionary)
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
        let copy = copy.map(|copy| copy.0);
        call(slf.py(), "view_or_copy", (slf, dtype, copy))
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
        read(slf, obj)
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

    /// The buffer through which the array is copied: its size, and the elements' offset and strides in it in bytes. If it has no
    /// gaps, also the orders of the elements in it that NumPy has a letter for.
    fn _staging(&self, is_written: bool) -> PyResult<(usize, isize, Vec<isize>, &'static str)> {
        let (in_memory, in_buffer) = staged(&self.layout, is_written).or_raise()?;
        let is_packed = is_written || !is_short(&self.layout);
        let orders = match (in_buffer.is_c_contiguous(), in_buffer.is_f_contiguous()) {
            _ if !is_packed => "",
            (true, true) => "CF",
            (true, false) => "C",
            (false, true) => "F",
            (false, false) => "",
        };
        let (offset, strides) = (in_buffer.byte_offset(), in_buffer.byte_strides());
        Ok((in_memory.nbytes(), offset, strides, orders))
    }

    /// Copies the array to a buffer, on the device.
    fn _gather(&self, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        let (elements, _) = staged(&self.layout, false).or_raise()?;
        let py = bytes.py();
        let bytes = HostBuffer::writable(bytes)?;
        check_size(&bytes, &elements)?;
        let (here, to) = (self.memory().context_device(), bytes.address());
        // SAFETY: the buffer has the elements' size, and the array's own device can access it.
        unsafe { self.copy_packed(py, here, &elements, to, false, bytes) }.map(drop)
    }

    /// Copies a buffer to the array, on the device.
    fn _scatter(&self, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = bytes.py();
        self.memory().check_writable()?;
        let (elements, _) = staged(&self.layout, true).or_raise()?;
        let bytes = HostBuffer::readable(bytes)?;
        check_size(&bytes, &elements)?;
        let (here, from) = (self.memory().context_device(), bytes.address());
        // SAFETY: as for `_gather`.
        unsafe { self.copy_packed(py, here, &elements, from, true, bytes) }.map(drop)
    }

    /// Refuses to write to an array that is read-only or repeats elements.
    pub(super) fn _check_target(&self) -> PyResult<()> {
        self.memory().check_writable()?;
        check_distinct(&self.layout)
    }

    /// The array, or one of unsigned integers in place of a type that the protocols of NumPy have no name for.
    fn _plain(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let (py, array) = (slf.py(), slf.get());
        match array.element.narrow().and_then(ItemType::bits) {
            None => Ok(slf.clone().unbind()),
            Some(bits) => Py::new(py, array.of(py, bits.into(), array.layout.clone())?),
        }
    }

    /// Whether a NumPy dtype is of the array's elements.
    fn _is_of(&self, dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
        match dtype::read(dtype) {
            Ok(element) => Ok(element == self.element),
            Err(error) if error.is_instance_of::<PyTypeError>(dtype.py()) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Calls a function of the package's module for NumPy.
fn call<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: OnceBox<Py<PyModule>> = OnceBox::new();
    let module = MODULE.get_or_try_init(|| -> PyResult<_> {
        imports::numpy(py)?;
        Ok(Box::new(py.import("zeusm._host")?.unbind()))
    })?;
    module.bind(py).call_method1(function, arguments)
}

/// The elements as NumPy shows them.
pub(super) fn shown(array: &Bound<'_, UsmArray>) -> PyResult<String> {
    call(array.py(), "shown", (array,))?.extract()
}

/// Copies the array to a new NumPy array, or to `destination`.
pub(super) fn read<'py>(
    array: &Bound<'py, UsmArray>,
    destination: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    call(array.py(), "read", (array, destination))
}

/// Copies `source`, which NumPy converts to an array, to the array.
pub(super) fn write(array: &Bound<'_, UsmArray>, source: &Bound<'_, PyAny>) -> PyResult<()> {
    call(array.py(), "write", (array, source)).map(drop)
}

/// Copies what NumPy converts and broadcasts to the array.
pub(super) fn assign(array: &Bound<'_, UsmArray>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    call(array.py(), "assign", (array, value)).map(drop)
}

/// Copies the elements between arrays of the same shape and type in USM, which may overlap, through host memory. If there is not
/// enough of that, it copies nothing and returns `false`.
pub(super) fn copy_through(source: &UsmArray, target: &Bound<'_, UsmArray>) -> PyResult<bool> {
    let py = target.py();
    call(py, "copy_through", (source.share(py)?, target))?.extract()
}

/// The bytes that the host copies three times in the time that a device takes for an operation.
const OPERATION: usize = 4 << 10;

/// The same for NumPy's calls.
const CALLS: usize = 64 * OPERATION;

/// Whether [`copy_through`] takes less time than the operations of a device that [`transfer::copy_strided`] needs for the layout
/// of a source, or of a target that is written, and NumPy is installed. A device copies rows of bytes upwards, so that reversed
/// elements are an operation each.
pub(super) fn is_faster(py: Python<'_>, layout: &Layout, is_written: bool) -> PyResult<bool> {
    let Ok((in_memory, _)) = staged(layout, is_written) else {
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
    let layout = Layout::new(&shape, Some(&strides), 0, element.size()).or_raise()?;
    Ok((array, element, layout))
}

/// What the device copies to a staging buffer, or from it if the array is written, and the layout in that buffer.
fn staged(layout: &Layout, is_written: bool) -> Result<(Layout, Layout), Error> {
    if !is_written && is_short(layout) {
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
