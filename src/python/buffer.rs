//! Host memory of other Python objects, taken through the buffer protocol (PEP 3118).

use std::ffi::c_int;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, ffi};

/// A C-contiguous buffer of any item type, held until it is dropped; the exporter cannot resize it meanwhile.
pub(super) struct HostBuffer {
    /// Boxed: exporters may point into the structure itself.
    view: Box<ffi::Py_buffer>,
}

// SAFETY: the memory stays where it is until the release, which `Drop` does with the interpreter attached.
unsafe impl Send for HostBuffer {}
// SAFETY: shared references give out the address and the length only.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// A buffer to read from.
    pub(super) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::get(object, ffi::PyBUF_C_CONTIGUOUS, "source")
    }

    /// A buffer to write to.
    pub(super) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let flags = ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_WRITABLE;
        Self::get(object, flags, "destination")
    }

    fn get(object: &Bound<'_, PyAny>, flags: c_int, role: &str) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the interpreter is attached, and `view` is there for the exporter to fill in.
        let answer = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) };
        if answer == -1 {
            return Err(refusal(object, role));
        }
        Ok(Self { view })
    }

    /// Where it begins.
    pub(super) fn address(&self) -> usize {
        self.view.buf.expose_provenance()
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.view.readonly != 0
    }

    /// Length in bytes.
    pub(super) fn size(&self) -> usize {
        self.view.len.unsigned_abs()
    }
}

/// What the exporter said, as the exception that dpctl raises: `TypeError` for no buffer, `ValueError` for a wrong one.
fn refusal(object: &Bound<'_, PyAny>, role: &str) -> PyErr {
    let py = object.py();
    let cause = PyErr::fetch(py);
    let name = object
        .get_type()
        .name()
        .map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let error = if cause.is_instance(py, &PyTypeError::type_object(py)) {
        PyTypeError::new_err(format!("{role} {name} does not have the buffer protocol"))
    } else {
        PyValueError::new_err(format!(
            "{role} {name} must be a C-contiguous{} buffer: {}",
            if role == "source" { "" } else { ", writable" },
            cause.value(py)
        ))
    };
    error.set_cause(py, Some(cause));
    error
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: the interpreter is attached and the buffer is released once.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
        });
    }
}
