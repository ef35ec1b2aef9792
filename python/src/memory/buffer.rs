//! The buffer protocol of memory objects (PEP 3118): the bytes of host and shared memory, in place.

// PyO3's trampoline for `__getbuffer__` calls it without an unsafe block.
#![allow(unsafe_op_in_unsafe_fn)]

use std::ffi::c_int;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::base::PyMemory;
use zeusm::usm::UsmKind;

#[pymethods]
impl PyMemory {
    /// Fills in a `Py_buffer` of bytes, with the shape, strides and format that `flags` request.
    ///
    /// # Safety
    /// `view` must be a buffer structure to fill in.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let (py, memory) = (slf.py(), slf.get());
        // SAFETY: the buffer protocol requires a null `obj` when the request fails.
        unsafe { (*view).obj = std::ptr::null_mut() };
        if flags == ffi::PyBUF_READ || flags == ffi::PyBUF_WRITE {
            return Err(PyBufferError::new_err(
                "PyBUF_READ and PyBUF_WRITE are no requests for a buffer",
            ));
        }
        // An assignment to `__class__` does not change the kind.
        if memory.kind == UsmKind::Device {
            return Err(not_accessible(memory));
        }
        memory.views.acquire(py, &memory.pins)?;
        let address = memory
            .for_buffer(py, memory.extent(), flags)
            .inspect_err(|_| memory.release_view(py))?;
        // SAFETY: `view` is to be filled in, and the address is for it.
        match unsafe { fill_in(slf, view, address, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(py)),
        }
    }

    /// Ends the use of a buffer.
    ///
    /// # Safety
    /// `__getbuffer__` must have filled in the view, which must not be released yet.
    unsafe fn __releasebuffer__(slf: &Bound<'_, Self>, _view: *mut ffi::Py_buffer) {
        slf.get().release_view(slf.py());
    }
}

impl PyMemory {
    /// Releases a buffer that was counted.
    pub(super) fn release_view(&self, py: Python<'_>) {
        self.views.release(py, &self.pins);
    }
}

/// Fills in a `Py_buffer` after the buffer was counted.
///
/// # Safety
/// `view` must be a buffer structure to fill in, and the address the memory's.
pub(super) unsafe fn fill_in(
    memory: &Bound<'_, PyMemory>,
    view: *mut ffi::Py_buffer,
    address: usize,
    flags: c_int,
) -> c_int {
    let inner = memory.get();
    // SAFETY: `view` is to be filled in. The exporter is `memory` itself, which the view keeps alive, and with it the
    // bytes; nothing moves or shrinks them.
    let filled = unsafe {
        ffi::PyBuffer_FillInfo(
            view,
            memory.as_ptr(),
            std::ptr::with_exposed_provenance_mut(address),
            inner.nbytes.cast_signed(),
            c_int::from(inner.terms.is_read_only()),
            flags,
        )
    };
    if filled != 0 {
        inner.release_view(memory.py());
    }
    filled
}

/// The error for an access of the host to device memory.
fn not_accessible(memory: &PyMemory) -> PyErr {
    PyTypeError::new_err(format!(
        "USM-device memory on {} cannot be accessed by the host: use copy_to_host(), or MemoryUSMShared or \
         MemoryUSMHost; a method of dpctl.SyclQueue takes \
         dpctl.memory.as_usm_memory(memory){}",
        memory.context_device().device().name(),
        memory.host_access_hint(),
    ))
}
