//! Copies and fills, each done when the call returns.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::PyMemory;
use crate::python::buffer::HostBuffer;
use crate::python::construct::Source;
use crate::python::transfer;

#[pymethods]
impl PyMemory {
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
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(4)
    /// >>> memory.copy_from_host(b"abcd")
    /// >>> memory.copy_to_host(bytearray(4))
    /// bytearray(b'abcd')
    /// >>> memory.copy_to_host().tolist()
    /// [97, 98, 99, 100]
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
        self.check_holds(&buffer)?;
        let _use = self.uses.guard()?;
        self.after_queue(py)?;
        let to = buffer.pointer().expose_provenance();
        // SAFETY: `self` keeps the source and `buffer` the destination, which is large enough.
        unsafe {
            transfer::copy(
                py,
                self.place(),
                to,
                self.pointer,
                self.nbytes,
                self.is_hosts(),
            )
        }?;
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
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> from array import array
    /// >>> memory = zm.MemoryUSMDevice(16)
    /// >>> memory.copy_from_host(array("d", [1.5, 2.5]))
    /// >>> memory.copy_to_host(array("d", [0, 0]))
    /// array('d', [1.5, 2.5])
    fn copy_from_host(&self, py: Python<'_>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = HostBuffer::readable(obj)?;
        self.check_writable()?;
        self.check_fits("source", buffer.size())?;
        let _use = self.uses.guard()?;
        self.after_queue(py)?;
        let from = buffer.pointer().expose_provenance();
        // SAFETY: `self` keeps the destination, which is large enough, and `buffer` the source.
        unsafe {
            transfer::copy(
                py,
                self.place(),
                self.pointer,
                from,
                buffer.size(),
                self.is_hosts(),
            )
        }
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
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> source, memory = zm.MemoryUSMShared(3), zm.MemoryUSMDevice(3)
    /// >>> source.memset(7)
    /// >>> memory.copy_from_device(source)
    /// >>> memory.tobytes()
    /// b'\x07\x07\x07'
    fn copy_from_device(&self, py: Python<'_>, sycl_usm_ary: &Bound<'_, PyAny>) -> PyResult<()> {
        let source = Source::of(sycl_usm_ary)?;
        let _read = source.uses.guard()?;
        self.check_writable()?;
        self.check_fits("source", source.nbytes)?;
        let _use = self.uses.guard()?;
        source.after_queue(py)?;
        self.after_queue(py)?;
        // SAFETY: `self` and `source` keep both sides, and the destination is large enough.
        unsafe {
            transfer::copy_between(
                py,
                self.place(),
                self.pointer,
                source.place(),
                source.pointer,
                source.nbytes,
                self.is_hosts() && source.is_hosts(),
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
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(3)
    /// >>> memory.memset(255)
    /// >>> memory.tobytes()
    /// b'\xff\xff\xff'
    #[pyo3(signature = (val=None))]
    fn memset(&self, py: Python<'_>, val: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let byte = byte(val)?;
        self.check_writable()?;
        let _use = self.uses.guard()?;
        self.after_queue(py)?;
        // SAFETY: `self` keeps the memory.
        unsafe {
            transfer::fill(
                py,
                self.place(),
                self.pointer,
                byte,
                self.nbytes,
                self.is_hosts(),
            )
        }
    }

    /// A copy of the memory as bytes.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMHost(4)
    /// >>> memory.copy_from_host(b"abcd")
    /// >>> memory.tobytes()
    /// b'abcd'
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let _use = self.uses.guard()?;
        self.after_queue(py)?;
        PyBytes::new_with(py, self.nbytes, |bytes| {
            let to = bytes.as_mut_ptr().expose_provenance();
            // SAFETY: `self` keeps the source; the destination, new and as large, is nobody else's yet.
            unsafe {
                transfer::copy(
                    py,
                    self.place(),
                    to,
                    self.pointer,
                    bytes.len(),
                    self.is_hosts(),
                )
            }
        })
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.tobytes(py)
    }
}

/// The value to set every byte to; 0 by default.
///
/// # Errors
/// `ValueError` when it is not a byte, `TypeError` when it is no integer.
pub(super) fn byte(val: Option<&Bound<'_, PyAny>>) -> PyResult<u8> {
    let Some(val) = val else {
        return Ok(0);
    };
    val.extract::<u8>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(val.py()) {
            PyValueError::new_err(format!("val must be a byte, 0 to 255, not {val}"))
        } else {
            error
        }
    })
}
