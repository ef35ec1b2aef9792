//! Host memory of other Python objects, by the buffer protocol (PEP 3118).

use std::ffi::{CStr, c_int};

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::errors::{caused, normalized, passes};
use crate::interpreter::{attach, intern};
use crate::shown::{class_name, naming};

/// A C-contiguous buffer of any item type, released by the drop; the exporter cannot resize it before.
pub(crate) struct HostBuffer {
    /// Boxed, as exporters may store pointers to the structure itself.
    view: Box<ffi::Py_buffer>,
}

// SAFETY: the memory does not move before the release, which `Drop` makes with the interpreter attached.
unsafe impl Send for HostBuffer {}
// SAFETY: shared references return the address and the length only.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// A buffer to read from.
    pub(crate) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::get(object, ffi::PyBUF_C_CONTIGUOUS, "source")
    }

    /// A buffer to write to.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let flags = ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_WRITABLE;
        Self::get(object, flags, "destination")
    }

    /// A buffer to use in place.
    pub(crate) fn in_place(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let flags = ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_WRITABLE;
        Self::get(object, flags, "buffer")
    }

    fn get(object: &Bound<'_, PyAny>, flags: c_int, role: &str) -> PyResult<Self> {
        let py = object.py();
        let buffer = match Self::request(object, flags | ffi::PyBUF_FORMAT) {
            // NumPy has no buffer format for some of its types, dates for instance.
            Err(error) if !passes(py, &error) && holds_no_objects(object)? => {
                Self::request(object, flags)
            }
            answer => answer,
        }
        .map_err(|error| match normalized(py, error) {
            error if passes(py, &error) => error,
            refused => refusal(object, role, refused),
        })?;
        match buffer.format() {
            Some(format) if holds_references(format.to_bytes()) => {
                Err(PyValueError::new_err(format!(
                    "{role} {} has items of the format {format:?}: references and pointers to other objects are not \
                     copied as bytes",
                    class_name(object)
                )))
            }
            _ => Ok(buffer),
        }
    }

    fn request(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = Box::<ffi::Py_buffer>::new_uninit();
        // SAFETY: the field is written. An exporter may leave it alone where the format is not requested.
        unsafe { (&raw mut (*view.as_mut_ptr()).format).write(std::ptr::null_mut()) };
        // SAFETY: the interpreter is attached, and `view` is a buffer structure that the exporter fills in.
        match unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } {
            -1 => Err(PyErr::fetch(object.py())),
            _ => Ok(Self {
                // SAFETY: the exporter has filled it in.
                view: unsafe { view.assume_init() },
            }),
        }
    }

    /// The items' format; `None` for unsigned bytes.
    fn format(&self) -> Option<&CStr> {
        let format = self.view.format;
        // SAFETY: an exporter's format is a string that lives as long as the buffer.
        (!format.is_null()).then(|| unsafe { CStr::from_ptr(format) })
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> usize {
        self.view.buf.expose_provenance()
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.view.readonly != 0
    }

    /// Length in bytes.
    pub(crate) fn size(&self) -> usize {
        self.view.len.unsigned_abs()
    }
}

/// Converts a failed request to the exception that dpctl raises: `TypeError` for an object without the buffer protocol, also for
/// memory of a device, and for an unsuitable buffer the exporter's `BufferError` or `ValueError`. Other exceptions of the
/// exporter propagate unchanged.
fn refusal(object: &Bound<'_, PyAny>, role: &str, cause: PyErr) -> PyErr {
    let (py, name) = (object.py(), class_name(object));
    if cause.is_instance_of::<PyTypeError>(py) {
        // SAFETY: the interpreter is attached.
        let has_protocol = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
        let advice = match object.getattr_opt(intern!(py, "__sycl_usm_array_interface__")) {
            Ok(None) if has_protocol => return cause,
            Ok(None) => "",
            Ok(Some(_)) if role == "source" => ": copy_from_device copies USM",
            Ok(Some(_)) if role == "buffer" => ": it is USM already",
            Ok(Some(_)) => ": copy_to_device copies to USM",
            Err(raised) => return raised,
        };
        let error = PyTypeError::new_err(format!(
            "{role} {name} does not have the buffer protocol{advice}"
        ));
        return caused(py, error, cause);
    }
    let new_error = if cause.is_instance_of::<PyBufferError>(py) {
        PyBufferError::new_err
    } else if cause.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err
    } else {
        return cause;
    };
    let writable = if role == "source" { "" } else { ", writable" };
    let error = naming(cause.value(py), |reason| {
        new_error(format!(
            "{role} {name} must be a C-contiguous{writable} buffer: {reason}"
        ))
    });
    caused(py, error, cause)
}

/// Whether it is a NumPy-like array whose dtype says that it has no Python objects.
fn holds_no_objects(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let Some(dtype) = object.getattr_opt(intern!(py, "dtype"))? else {
        return Ok(false);
    };
    match dtype.getattr_opt(intern!(py, "hasobject"))? {
        Some(holds) => Ok(!holds.is_truthy()?),
        None => Ok(false),
    }
}

/// Whether items of a format hold references to Python objects or pointers.
///
/// Source: PEP 3118, "Additions to the struct string-syntax"; ctypes for `z`, `Z`. The names of fields are enclosed in
/// colons.
fn holds_references(format: &[u8]) -> bool {
    format.split(|&code| code == b':').step_by(2).any(|codes| {
        codes.iter().enumerate().any(|(at, &code)| {
            let next = codes.get(at + 1);
            // The two letters together denote a complex number.
            let is_complex = || next.is_some_and(|next| b"fdg".contains(next));
            b"OP&Xz".contains(&code) || code == b'Z' && !is_complex()
        })
    })
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        attach(|_| {
            // SAFETY: the interpreter is attached and the buffer is released once.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
        });
    }
}

#[cfg(test)]
mod tests;
