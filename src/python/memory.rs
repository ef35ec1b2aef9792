//! `_Memory`: what the three classes of USM objects have in common.

use std::sync::Arc;

use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::buffer::HostBuffer;
use super::construct;
use super::dpctl::Dpctl;
use super::place::Place;
use super::syclobj::Target;
use super::{capsule, transfer};
use crate::usm::{Allocation, UsmKind};

/// Who keeps the memory alive.
pub(super) enum Owner {
    /// zeusm, with everybody who shares it.
    Allocation(Arc<Allocation>),
    /// The object whose interface was read.
    Object(Py<PyAny>),
}

/// Untyped USM. Use :class:`MemoryUSMShared`, :class:`MemoryUSMDevice` or :class:`MemoryUSMHost`.
///
/// Objects may be used from several threads at once: everything here is fixed at construction. What the memory
/// itself holds is ordered by its users.
#[pyclass(name = "_Memory", module = "zeusm.memory", subclass, weakref, frozen)]
pub(super) struct PyMemory {
    pub(super) pointer: usize,
    pub(super) nbytes: usize,
    pub(super) kind: UsmKind,
    pub(super) read_only: bool,
    pub(super) place: Arc<Place>,
    pub(super) owner: Owner,
    /// The `dpctl.SyclQueue` that it was made with, or that was made for it when somebody asked.
    pub(super) queue: PyOnceLock<Py<PyAny>>,
    /// Whether that queue is in order, so that what was submitted to it comes before any copy here.
    pub(super) in_order: bool,
}

impl PyMemory {
    /// Another object for the same memory.
    pub(super) fn share(&self, py: Python<'_>) -> Self {
        let queue = PyOnceLock::new();
        if let Some(known) = self.queue.get(py) {
            // A fresh cell is empty, so this succeeds.
            let _ = queue.set(py, known.clone_ref(py));
        }
        Self {
            pointer: self.pointer,
            nbytes: self.nbytes,
            kind: self.kind,
            read_only: self.read_only,
            place: Arc::clone(&self.place),
            owner: match &self.owner {
                Owner::Allocation(allocation) => Owner::Allocation(Arc::clone(allocation)),
                Owner::Object(object) => Owner::Object(object.clone_ref(py)),
            },
            queue,
            in_order: self.in_order,
        }
    }

    /// Lets what was submitted to an in-order SYCL queue happen first, as a copy on that queue would.
    pub(super) fn after_queue(&self, py: Python<'_>) -> PyResult<()> {
        match self.queue.get(py) {
            Some(queue) if self.in_order => queue.call_method0(py, "wait").map(drop),
            _ => Ok(()),
        }
    }

    fn check_writable(&self) -> PyResult<()> {
        if self.read_only {
            return Err(PyValueError::new_err(
                "the memory is read-only: its exporter marked it so in __sycl_usm_array_interface__",
            ));
        }
        Ok(())
    }

    fn check_fits(&self, what: &str, size: usize) -> PyResult<()> {
        if size > self.nbytes {
            return Err(PyValueError::new_err(format!(
                "{what} of {size} bytes is too large for USM memory of {} bytes",
                self.nbytes
            )));
        }
        Ok(())
    }

    /// The kind as a SYCL object's context sees it; `None` when the memory is unknown there.
    fn kind_in(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<UsmKind>> {
        let Some(syclobj) = syclobj.filter(|object| !object.is_none()) else {
            return Ok(Some(self.kind));
        };
        let target = Target::read(syclobj, "syclobj")?;
        target.accept(syclobj.py());
        Ok(target.context.pointer_kind(self.pointer))
    }
}

#[pymethods]
impl PyMemory {
    /// Size of the memory in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Size of the memory in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.nbytes
    }

    /// Address of the first byte; 0 when there is none.
    #[getter]
    fn _pointer(&self) -> usize {
        self.pointer
    }

    /// The object that owns the memory; None when zeusm does.
    #[getter]
    fn reference_obj(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.owner {
            Owner::Allocation(_) => None,
            Owner::Object(object) => Some(object.clone_ref(py)),
        }
    }

    /// The `dpctl.SyclContext` that the memory is bound to.
    #[getter]
    fn sycl_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.queue.get(py) {
            Some(queue) => queue.bind(py).getattr("sycl_context"),
            None => Dpctl::get(py)?.context_of(py, &self.place),
        }
    }

    /// The same as `sycl_context`.
    #[getter]
    fn _context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.sycl_context(py)
    }

    /// The `dpctl.SyclDevice` that the memory was allocated for.
    #[getter]
    fn sycl_device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.queue.get(py) {
            Some(queue) => queue.bind(py).getattr("sycl_device"),
            None => Dpctl::get(py)?.device_of(py, &self.place),
        }
    }

    /// A `dpctl.SyclQueue` of the memory's context and device: the one given when it was made, else a new one.
    #[getter]
    fn sycl_queue(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // Why there is no SYCL context is more to the point than why dpctl cannot be imported.
        self.place.sycl()?;
        self.queue
            .get_or_try_init(py, || {
                Ok(Dpctl::get(py)?.queue_of(py, &self.place)?.unbind())
            })
            .map(|queue| queue.clone_ref(py))
    }

    /// The same as `sycl_queue`.
    #[getter]
    fn _queue(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.sycl_queue(py)
    }

    /// What other packages read to use the memory in place.
    ///
    /// `data` (address, read-only), `shape` in bytes, `strides` None, `offset` 0, `typestr` "|u1", `version` 1, and
    /// `syclobj`, a `SyclContextRef` capsule made anew at each read.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     When the memory is in no SYCL context; the message says why and what to install.
    #[getter]
    fn __sycl_usm_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let syclobj = capsule::of_context(py, self.place.sycl()?)?;
        let dictionary = PyDict::new(py);
        dictionary.set_item(intern!(py, "data"), (self.pointer, self.read_only))?;
        dictionary.set_item(intern!(py, "shape"), (self.nbytes,))?;
        dictionary.set_item(intern!(py, "strides"), py.None())?;
        dictionary.set_item(intern!(py, "offset"), 0)?;
        dictionary.set_item(intern!(py, "typestr"), intern!(py, "|u1"))?;
        dictionary.set_item(intern!(py, "version"), 1)?;
        dictionary.set_item(intern!(py, "syclobj"), syclobj)?;
        Ok(dictionary)
    }

    /// Kind of the memory: 'shared', 'device' or 'host'; 'unknown' in a context that does not know it.
    ///
    /// Parameters
    /// ----------
    /// syclobj : optional
    ///     A SYCL object whose context is asked; by default the memory's own.
    #[pyo3(signature = (syclobj=None))]
    fn get_usm_type(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<&'static str> {
        Ok(self.kind_in(syclobj)?.map_or("unknown", UsmKind::name))
    }

    /// Kind of the memory as SYCL's number: 1 device, 2 shared, 3 host; 0 in a context that does not know it.
    ///
    /// Parameters
    /// ----------
    /// syclobj : optional
    ///     A SYCL object whose context is asked; by default the memory's own.
    #[pyo3(signature = (syclobj=None))]
    fn get_usm_type_enum(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
        Ok(match self.kind_in(syclobj)? {
            None => 0,
            Some(UsmKind::Device) => 1,
            Some(UsmKind::Shared) => 2,
            Some(UsmKind::Host) => 3,
        })
    }

    /// Copies the memory to the host.
    ///
    /// Parameters
    /// ----------
    /// obj : optional
    ///     A writable C-contiguous buffer of any item type with room for all bytes; by default a new NumPy array.
    ///
    /// Returns
    /// -------
    /// object
    ///     `obj`, or a new `numpy.ndarray` of `nbytes` items of type uint8.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `obj` has no buffer.
    /// ValueError
    ///     When it is read-only, not contiguous or too small; nothing is written then.
    /// LevelZeroError
    ///     When the copy fails.
    #[pyo3(signature = (obj=None))]
    fn copy_to_host<'py>(
        &self,
        py: Python<'py>,
        obj: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let destination = match obj.filter(|obj| !obj.is_none()) {
            Some(obj) => obj,
            None => py
                .import("numpy")?
                .call_method1("empty", (self.nbytes, "|u1"))?,
        };
        let buffer = HostBuffer::writable(&destination)?;
        if buffer.size() < self.nbytes {
            return Err(PyValueError::new_err(format!(
                "destination of {} bytes is too small for USM memory of {} bytes",
                buffer.size(),
                self.nbytes
            )));
        }
        self.after_queue(py)?;
        let to = buffer.pointer().expose_provenance();
        // SAFETY: `self` keeps the source and `buffer` the destination, which is large enough.
        unsafe { transfer::copy(py, &self.place, to, self.pointer, self.nbytes) }?;
        Ok(destination)
    }

    /// Copies from the host to the beginning of the memory.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     A C-contiguous buffer of any item type, of at most `nbytes` bytes.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `obj` has no buffer.
    /// ValueError
    ///     When it is not contiguous or too large, or the memory is read-only; nothing is written then.
    /// LevelZeroError
    ///     When the copy fails.
    fn copy_from_host(&self, py: Python<'_>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = HostBuffer::readable(obj)?;
        self.check_writable()?;
        self.check_fits("source", buffer.size())?;
        self.after_queue(py)?;
        let from = buffer.pointer().expose_provenance();
        // SAFETY: `self` keeps the destination, which is large enough, and `buffer` the source.
        unsafe { transfer::copy(py, &self.place, self.pointer, from, buffer.size()) }
    }

    /// Copies USM to the beginning of the memory, from any context.
    ///
    /// Parameters
    /// ----------
    /// sycl_usm_ary
    ///     An object with `__sycl_usm_array_interface__` whose bytes, from its first element to its last, are at most
    ///     `nbytes`.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When it has no such interface or a malformed one, or is too large, or the memory is read-only.
    /// LevelZeroError
    ///     When the copy fails.
    fn copy_from_device(&self, py: Python<'_>, sycl_usm_ary: &Bound<'_, PyAny>) -> PyResult<()> {
        let source = construct::view_of(sycl_usm_ary)?;
        self.check_writable()?;
        self.check_fits("source", source.nbytes)?;
        source.after_queue(py)?;
        self.after_queue(py)?;
        // SAFETY: `self` and `source` keep both sides, and the destination is large enough.
        unsafe {
            transfer::copy_between(
                py,
                &self.place,
                self.pointer,
                &source.place,
                source.pointer,
                source.nbytes,
            )
        }
    }

    /// Sets every byte.
    ///
    /// Parameters
    /// ----------
    /// val : int
    ///     The byte, 0 to 255.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When `val` is not a byte, or the memory is read-only.
    /// LevelZeroError
    ///     When the fill fails.
    #[pyo3(signature = (val=None))]
    fn memset(&self, py: Python<'_>, val: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let byte = match val {
            None => 0,
            Some(val) => val.extract::<u8>().map_err(|error| {
                if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) {
                    PyValueError::new_err(format!("val must be a byte, 0 to 255, not {val}"))
                } else {
                    error
                }
            })?,
        };
        self.check_writable()?;
        self.after_queue(py)?;
        // SAFETY: `self` keeps the memory.
        unsafe { transfer::fill(py, &self.place, self.pointer, byte, self.nbytes) }
    }

    /// A copy of the memory as bytes.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.after_queue(py)?;
        PyBytes::new_with(py, self.nbytes, |bytes| {
            let to = bytes.as_mut_ptr().expose_provenance();
            // SAFETY: `self` keeps the source; the destination, new and as large, is nobody else's yet.
            unsafe { transfer::copy(py, &self.place, to, self.pointer, bytes.len()) }
        })
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.tobytes(py)
    }

    fn __len__(&self) -> usize {
        self.nbytes
    }

    fn __repr__(&self) -> String {
        format!(
            "<zeusm USM-{} memory of {} bytes at {:#x}>",
            self.kind, self.nbytes, self.pointer
        )
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("zeusm.memory")?.getattr("_from_pickle")?;
        let arguments = (self.tobytes(py)?, self.kind.name()).into_pyobject(py)?;
        Ok((rebuild, arguments))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.owner {
            Owner::Allocation(_) => Ok(()),
            Owner::Object(object) => visit.call(object),
        }
    }
}
