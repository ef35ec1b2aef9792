//! Blocking copies and fills: they are complete when the call returns.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use std::ptr;

use super::cuda;
use crate::array::adopt;
use crate::imports;
use crate::memory::{Pinned, PyMemory};
use crate::parse::{self, HostBuffer, interface};
use crate::transfer;

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
    ///     When `obj` does not support the buffer protocol.
    /// ValueError
    ///     When it is too small; nothing is written then.
    /// BufferError, ValueError
    ///     The exporter's exception, when it is read-only or not contiguous.
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
        slf: &Bound<'py, Self>,
        obj: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, memory) = (slf.py(), slf.get());
        let destination = match obj {
            Some(obj) => obj,
            None => imports::numpy(py)?.call_method1("empty", (memory.nbytes, "|u1"))?,
        };
        let buffer = HostBuffer::writable(&destination)?;
        memory.check_holds(&buffer)?;
        // SAFETY: the buffer owns the destination, which is large enough.
        unsafe { read(slf, buffer.address(), buffer) }?;
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
    ///     When `obj` does not support the buffer protocol.
    /// ValueError
    ///     When it is too large, or the memory is read-only; nothing is written then.
    /// BufferError, ValueError
    ///     The exporter's exception, when it is not contiguous.
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
    fn copy_from_host(slf: &Bound<'_, Self>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        copy_buffer(slf, HostBuffer::readable(obj)?)
    }

    /// Copies USM to the beginning of the memory, from any context.
    ///
    /// Parameters
    /// ----------
    /// sycl_usm_ary
    ///     An object with `__sycl_usm_array_interface__` or `__cuda_array_interface__` whose extent, from its first element to
    ///     its last, is at most `nbytes`. CUDA memory is no USM; it is copied through host memory.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     When a copy from CUDA memory fails, or CUDA's driver library cannot be opened.
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
    fn copy_from_device(slf: &Bound<'_, Self>, sycl_usm_ary: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(source) = adopt::pinned(sycl_usm_ary)? {
            return copy_usm(slf, &source);
        }
        match interface::read_cuda(sycl_usm_ary)? {
            Some(array) => cuda::copy_from(slf, sycl_usm_ary, &array),
            None => adopt::refuse(sycl_usm_ary),
        }
    }

    /// Copies the memory to the beginning of USM of any context, or of CUDA memory, which is no USM.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     An object with `__sycl_usm_array_interface__` or `__cuda_array_interface__` and room for all bytes; CUDA memory must
    ///     not have gaps between its elements, nor elements that overlap.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When it has no such interface or a malformed one, or is too small or read-only.
    /// RuntimeError
    ///     When the copy fails, or CUDA's driver library cannot be opened.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory, there = zm.MemoryUSMDevice(3), zm.MemoryUSMShared(4)
    /// >>> memory.memset(7)
    /// >>> there.memset(0)
    /// >>> memory.copy_to_device(there)
    /// >>> there.tobytes()
    /// b'\x07\x07\x07\x00'
    fn copy_to_device(slf: &Bound<'_, Self>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(target) = adopt::memory(obj)? {
            return Self::copy_from_device(&Bound::new(slf.py(), target)?, slf);
        }
        match interface::read_cuda(obj)? {
            Some(array) => cuda::copy_to(slf, obj, &array),
            None => adopt::refuse(obj),
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
    #[pyo3(signature = (val=Byte(0)), text_signature = "($self, val=0)")]
    fn memset(slf: &Bound<'_, Self>, val: Byte) -> PyResult<()> {
        let (py, memory) = (slf.py(), slf.get());
        memory.check_writable()?;
        let pinned = Pinned::new(slf)?;
        let (to, size) = (memory.side(py)?, memory.nbytes);
        // SAFETY: `pinned` owns the memory.
        unsafe { transfer::fill(py, to, val.0, size, pinned) }.map(drop)
    }

    /// Copies a buffer or USM of the same size to a slice, or sets its bytes to an integer.
    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let part = slf.as_any().get_item(index)?.cast_into::<Self>()?;
        if parse::is_integral(value)? {
            return Self::memset(&part, value.extract()?);
        }
        let size = part.get().nbytes;
        let check = |given: usize| match given == size {
            true => Ok(()),
            false => Err(PyValueError::new_err(format!(
                "a source of {given} bytes cannot be assigned to a slice of {size} bytes"
            ))),
        };
        if let Some(source) = adopt::pinned(value)? {
            check(source.nbytes)?;
            copy_usm(&part, &source)
        } else {
            let buffer = HostBuffer::readable(value)?;
            check(buffer.size())?;
            copy_buffer(&part, buffer)
        }
    }

    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("cannot delete memory"))
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
    fn tobytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        let (py, memory) = (slf.py(), slf.get());
        let (bytes, to) = uninitialised(py, memory.nbytes)?;
        // SAFETY: the bytes object owns the destination, which is of the same size and has no other reference.
        unsafe { read(slf, to, bytes.clone().unbind()) }?;
        Ok(bytes)
    }

    fn __bytes__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        Self::tobytes(slf)
    }
}

/// A bytes object for the caller to fill in, and the address of its content. `PyBytes::new_with` would fill it with zeros, with
/// the GIL held.
fn uninitialised(py: Python<'_>, size: usize) -> PyResult<(Bound<'_, PyBytes>, usize)> {
    // SAFETY: without a content the object is new, or the one without bytes, and its type is known. Nothing else refers to a new
    // one until this returns.
    unsafe {
        let bytes = ffi::PyBytes_FromStringAndSize(ptr::null(), size.cast_signed());
        let bytes = Bound::from_owned_ptr_or_err(py, bytes)?;
        let content = ffi::PyBytes_AsString(bytes.as_ptr());
        Ok((bytes.cast_into_unchecked(), content.expose_provenance()))
    }
}

/// Copies a buffer to the beginning of the memory, and waits.
fn copy_buffer(object: &Bound<'_, PyMemory>, buffer: HostBuffer) -> PyResult<()> {
    let (py, memory) = (object.py(), object.get());
    let size = buffer.size();
    memory.check_takes(size)?;
    let (pinned, to) = (Pinned::new(object)?, memory.side(py)?);
    let from = to.host(buffer.address());
    // SAFETY: the operands own both sides, and the destination is large enough.
    unsafe { transfer::copy(py, to, from, size, (pinned, buffer)) }.map(drop)
}

/// Copies USM of any context to the beginning of the memory, and waits.
fn copy_usm(object: &Bound<'_, PyMemory>, source: &Pinned) -> PyResult<()> {
    let (py, memory) = (object.py(), object.get());
    memory.check_takes(source.nbytes)?;
    let operands = (Pinned::new(object)?, source.share(py)?);
    let (from, to) = (source.side(py)?, memory.side(py)?);
    // SAFETY: the operands own both sides, and the destination is large enough.
    unsafe { transfer::copy(py, to, from, source.nbytes, operands) }.map(drop)
}

/// Copies all bytes to `destination`, and waits.
///
/// # Safety
/// `owner` must keep `nbytes` bytes at `destination` valid.
unsafe fn read(
    object: &Bound<'_, PyMemory>,
    destination: usize,
    owner: impl Send + 'static,
) -> PyResult<()> {
    let (py, memory) = (object.py(), object.get());
    let (pinned, from) = (Pinned::new(object)?, memory.side(py)?);
    let to = from.host(destination);
    // SAFETY: the operands own both sides; the caller guarantees that the destination is valid.
    unsafe { transfer::copy(py, to, from, memory.nbytes, (pinned, owner)) }.map(drop)
}

/// The byte value of a fill.
pub(super) struct Byte(pub(super) u8);

impl<'py> FromPyObject<'_, 'py> for Byte {
    type Error = PyErr;

    /// # Errors
    /// `ValueError` when it is not a byte, `TypeError` when it is not an integer.
    fn extract(val: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let byte = parse::integer_or(&val, |val, is_integer| match is_integer {
            true => PyValueError::new_err(format!("val must be a byte, 0 to 255, not {val}")),
            false => PyTypeError::new_err(format!("val must be an integer, not {val}")),
        })?;
        Ok(Self(byte))
    }
}
