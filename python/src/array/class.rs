//! `UsmArray`.

// PyO3's trampolines for the buffer protocol call it without an unsafe block.
#![allow(unsafe_op_in_unsafe_fn)]

use std::ffi::c_int;
use std::ops::Range;

use pyo3::PyTraverseError;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{buffer, create, dlpack_export, fields, host, interface};
use crate::errors::OrRaise;
use crate::memory::{Address, Pinned, PyMemory};
use crate::parse::{dtype, index, shape};
use crate::transfer;
use zeusm::suai::{Allocation, ElementType, Error, Layout};

/// An n-dimensional array in USM: a view of a memory object with a type, a shape and strides, without arithmetic.
///
/// Made by `empty`, `asarray`, `from_dlpack`, `as_usm_array` and the memory objects' `view`. Strides and offset count
/// elements, as in `__sycl_usm_array_interface__` and dpctl.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> array = zeusm.asarray([[1, 2, 3], [4, 5, 6]], dtype="int32", usm_type="shared")
/// >>> array[:, ::-1].T.copy_to_host().tolist()
/// [[3, 6], [2, 5], [1, 4]]
#[pyclass(module = "zeusm", weakref, frozen)]
pub struct UsmArray {
    base: Pinned,
    pub(super) element: ElementType,
    /// The layout relative to the memory's pointer; it is within the memory.
    pub(super) layout: Layout,
}

impl UsmArray {
    /// An array in `memory`.
    ///
    /// # Errors
    /// `ValueError` when the array extends beyond the memory.
    pub(super) fn new(
        memory: &Bound<'_, PyMemory>,
        element: ElementType,
        layout: Layout,
    ) -> PyResult<Self> {
        let inner = memory.get();
        let base = inner.address.number();
        let size = inner.nbytes;
        let checked = layout
            .extent()
            .check_within(base, Allocation { base, size });
        checked.map_err(|error| invalid(&error))?;
        Ok(Self {
            base: Pinned::new(memory)?,
            element,
            layout,
        })
    }

    /// The array that a memory object's `view` returns.
    pub(crate) fn view(
        memory: &Bound<'_, PyMemory>,
        dtype: &Bound<'_, PyAny>,
        shape: Option<&Bound<'_, PyAny>>,
        strides: Option<&Bound<'_, PyAny>>,
        offset: i64,
    ) -> PyResult<Self> {
        let element = dtype::read(dtype)?;
        let given = |value: Option<&Bound<'_, PyAny>>, role| {
            let value = value.filter(|value| !value.is_none());
            value.map(|value| shape::integers(value, role)).transpose()
        };
        let strides = given(strides, "strides")?;
        let shape = match given(shape, "shape")? {
            Some(shape) => shape,
            None if strides.is_some() => {
                return Err(PyTypeError::new_err("strides need a shape"));
            }
            None => vec![elements_from(memory.get().nbytes, &element, offset)?],
        };
        let layout = Layout::new(&shape, strides.as_deref(), offset, element.size());
        Self::new(memory, element, layout.map_err(|error| invalid(&error))?)
    }

    /// Another array in the same memory; `layout` must be within the bytes of this one.
    fn with(&self, py: Python<'_>, layout: Layout) -> PyResult<Self> {
        self.of(py, self.element.clone(), layout)
    }

    /// Another array in the same memory of other elements; `layout` must be within the bytes of this one.
    pub(super) fn of(
        &self,
        py: Python<'_>,
        element: ElementType,
        layout: Layout,
    ) -> PyResult<Self> {
        Ok(Self {
            base: self.base.share(py)?,
            element,
            layout,
        })
    }

    /// The same array as another object.
    pub(super) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        self.with(py, self.layout.clone())
    }

    pub(super) fn memory(&self) -> &PyMemory {
        self.base.memory()
    }

    pub(super) fn pinned(&self) -> &Pinned {
        &self.base
    }

    /// The address of the element with all indices 0, given the address of the memory; without elements, the latter.
    pub(super) fn first(&self, memory: usize) -> usize {
        match self.layout.elements() {
            0 => memory,
            _ => memory.wrapping_add_signed(self.layout.byte_offset()),
        }
    }

    /// The range of addresses from the lowest byte of an element to the highest.
    pub(super) fn extent(&self) -> Range<usize> {
        let extent = self.layout.extent();
        let memory = self.memory().address.number();
        transfer::range(memory.wrapping_add_signed(extent.start()), extent.len())
    }

    /// The offset for other packages: 0 without elements, so that the pointer is within the memory. dpctl and dpnp refuse a
    /// null pointer, even for no elements.
    pub(super) fn offset_or_zero(&self) -> Result<isize, Error> {
        match self.layout.elements() {
            0 => Ok(0),
            _ => self.layout.element_offset(),
        }
    }

    /// A memory object from the lowest byte of an element to the highest.
    pub(crate) fn extent_memory(&self, py: Python<'_>) -> PyResult<PyMemory> {
        let extent = self.layout.extent();
        let memory = self.memory().share(py)?;
        Ok(PyMemory {
            address: if extent.is_empty() {
                memory.address
            } else {
                let first = memory.address.number();
                Address::new(first.wrapping_add_signed(extent.start()))
            },
            nbytes: extent.len(),
            terms: memory.terms.aligned(0),
            ..memory
        })
    }

    /// The reason why the host cannot access the array, if it cannot.
    pub(super) fn check_host_accessible(&self) -> Result<(), String> {
        let memory = self.memory();
        if memory.kind.is_host_accessible() {
            return Ok(());
        }
        Err(format!(
            "USM-device memory on {} cannot be accessed by the host: use copy_to_host(){}",
            memory.context_device().device(),
            memory.host_access_hint(),
        ))
    }
}

/// The number of elements from an offset on.
fn elements_from(nbytes: usize, element: &ElementType, offset: i64) -> PyResult<i64> {
    let size = element.size() as i64;
    let nbytes = nbytes as i64;
    if nbytes % size != 0 {
        return Err(PyValueError::new_err(format!(
            "memory of {nbytes} bytes is no whole number of elements of {size} bytes; give a shape"
        )));
    }
    let all = nbytes / size;
    if offset < 0 || offset > all {
        return Err(PyValueError::new_err(format!(
            "offset {offset} is outside of the {all} elements in the memory"
        )));
    }
    Ok(all - offset)
}

/// Converts an error of the interface to one about arguments.
pub(super) fn invalid(error: &Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl UsmArray {
    /// The interface for other packages to use the array in place; strides and offset count elements.
    #[getter]
    fn __sycl_usm_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        interface::dictionary(py, self)
    }

    /// The interface for NumPy to use host and shared memory in place; device memory has none.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_host_accessible()
            .map_err(PyAttributeError::new_err)?;
        host::array_interface(py, self)
    }

    /// The conversion to NumPy: a view of host and shared memory, and `TypeError` for device memory, of which `copy_to_host`
    /// returns a copy.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let inner = slf.get();
        inner
            .check_host_accessible()
            .map_err(PyTypeError::new_err)?;
        host::as_numpy(slf, dtype, copy)
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

    /// A DLPack capsule of the array.
    ///
    /// Parameters
    /// ----------
    /// stream : dpctl.SyclQueue or -1, optional
    ///     The consumer's queue: work that is submitted to it later runs after the work that was submitted to the array's
    ///     queue. -1: the consumer waits itself for the work that was submitted to queues.
    /// max_version : tuple of int, optional
    ///     The newest version that the consumer supports; without it, the capsule holds the unversioned structure.
    /// dl_device : tuple of int, optional
    ///     The array's own device, or (1, 0) for the host: in place for host and shared memory, a copy for device
    ///     memory.
    /// copy : bool, optional
    ///     True: always copy; False: never copy.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     When the array cannot be exported with these arguments; the message has the reason and the remedy.
    ///
    /// Examples
    /// --------
    /// >>> import numpy, zeusm
    /// >>> array = zeusm.asarray([1.5, 2.5], usm_type="shared")
    /// >>> zeusm.from_dlpack(array)._pointer == array._pointer
    /// True
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        dlpack_export::dlpack(slf.py(), slf.get(), stream, max_version, dl_device, copy)
    }

    /// The DLPack device type, 14 for kDLOneAPI, and the position of the device among all root devices of SYCL.
    ///
    /// Without a SYCL context, the device of host and shared memory is (1, 0), the host.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        dlpack_export::device(py, self.memory())
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
        host::read(slf, obj.filter(|obj| !obj.is_none()))
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
        host::write(slf, obj)
    }

    /// The transposed array: the dimensions in reverse order, or in the given one.
    ///
    /// Parameters
    /// ----------
    /// *axes : int
    ///     A permutation of the axes.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.empty((2, 3, 4)).transpose(1, 0, 2).shape
    /// (3, 2, 4)
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let py = axes.py();
        let none = matches!(axes.get_item(0), Ok(only) if axes.len() == 1 && only.is_none());
        if axes.is_empty() || none {
            return self.t(py);
        }
        let axes: Vec<isize> = shape::spread(axes, "axes")?
            .into_iter()
            .map(|axis| isize::try_from(axis).unwrap_or(isize::MAX))
            .collect();
        self.with(py, self.layout.transposed(&axes).or_raise()?)
    }

    /// The array with its dimensions in reverse order.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.asarray([[1, 2, 3], [4, 5, 6]]).T.copy_to_host().tolist()
    /// [[1, 4], [2, 5], [3, 6]]
    #[getter(T)]
    fn t(&self, py: Python<'_>) -> PyResult<Self> {
        let layout = self.layout.reversed().map_err(|error| invalid(&error))?;
        self.with(py, layout)
    }

    /// The same elements in another shape.
    ///
    /// Parameters
    /// ----------
    /// *shape : int
    ///     The dimensions; one may be -1 and is computed from the number of elements.
    /// order : str
    ///     'C': the last index varies fastest; 'F': the first one.
    /// copy : bool, optional
    ///     None: a view if possible, else a copy; False: always a view; True: always a copy.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When the shape has another number of elements, or `copy` is False and no view is possible.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.empty((2, 3)).reshape(3, -1).shape
    /// (3, 2)
    #[pyo3(signature = (*shape, order="C", copy=None))]
    fn reshape(
        &self,
        shape: &Bound<'_, PyTuple>,
        order: &str,
        copy: Option<bool>,
    ) -> PyResult<Self> {
        let py = shape.py();
        let wanted = shape::spread(shape, "shape")?;
        let order = shape::order(order)?;
        let view = self.layout.reshaped(&wanted, order).or_raise()?;
        match view {
            Some(layout) if copy != Some(true) => self.with(py, layout),
            None if copy == Some(false) => Err(PyValueError::new_err(format!(
                "an array of shape {:?} and strides of {:?} bytes takes a copy to have the shape {wanted:?}",
                self.layout.shape(),
                self.layout.byte_strides(),
            ))),
            _ => {
                let copied = create::copied_in_order(py, self, order)?;
                match copied.layout.reshaped(&wanted, order).or_raise()? {
                    Some(layout) => copied.with(py, layout),
                    None => Err(PyValueError::new_err("the copy is not contiguous")),
                }
            }
        }
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(field) = fields::selected(self, key)? {
            return Ok(field);
        }
        let entries = index::read(&self.layout, key)?;
        self.with(key.py(), self.layout.index(&entries).or_raise()?)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.layout.shape().first() {
            Some(&size) => Ok(size),
            None => Err(PyTypeError::new_err(
                "an array of no dimensions has no len()",
            )),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let memory = self.memory();
        Ok(format!(
            "<zeusm array of shape {} and dtype {}, USM-{} on {}>",
            self.shape(py)?,
            dtype::name(&self.element),
            memory.kind,
            memory.context_device().device()
        ))
    }

    /// Fills in a buffer.
    ///
    /// # Safety
    /// `view` must be a buffer structure to fill in.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: the interpreter passes a buffer structure to fill in.
        unsafe { buffer::fill(&slf, view, flags) }
    }

    /// Ends the use of a buffer.
    ///
    /// # Safety
    /// `__getbuffer__` must have filled in `view`, which must not be released yet.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the interpreter passes a view that `__getbuffer__` filled in, once.
        unsafe { buffer::release(view) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.base.object())
    }
}
