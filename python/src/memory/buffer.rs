//! The buffer protocol of memory objects (PEP 3118): the bytes of host and shared memory, in place.

use std::ffi::c_int;

use once_cell::race::OnceBox;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::{MemoryUSMHost, MemoryUSMShared, PyMemory};
use crate::buffer_slots::BufferSlots;
use zeusm::usm::UsmKind;

/// Fills in a `Py_buffer` of bytes, with the shape, strides and format that `flags` request.
///
/// # Safety
/// `view` must be a buffer structure to fill in.
#[inline(always)] // PyO3 reads the result as one word, for which the processor stalls if it was written in two.
pub(super) unsafe fn host_buffer(
    memory: &Bound<'_, PyMemory>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let py = memory.py();
    let inner = memory.get();
    // SAFETY: the buffer protocol requires a null `obj` when the request fails.
    unsafe { (*view).obj = std::ptr::null_mut() };
    if flags == ffi::PyBUF_READ || flags == ffi::PyBUF_WRITE {
        return Err(PyBufferError::new_err(
            "PyBUF_READ and PyBUF_WRITE are no requests for a buffer",
        ));
    }
    if inner.kind == UsmKind::Device {
        // An assignment to `__class__` does not change the kind.
        return Err(not_accessible(inner));
    }
    inner.views.acquire(py, &inner.pins)?;
    let address = inner
        .for_buffer(py, inner.extent(), flags)
        .inspect_err(|_| inner.release_view(py))?;
    // SAFETY: `view` is to be filled in, and the address is for it.
    match unsafe { fill_in(memory, view, address, flags) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(py)),
    }
}

/// Fills in a `Py_buffer` after the buffer was counted.
///
/// # Safety
/// `view` must be a buffer structure to fill in, and the address the memory's.
unsafe fn fill_in(
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

impl PyMemory {
    /// Counts a buffer for a `memoryview` and returns the address, if no operation may use the memory: most requests find it so.
    #[inline]
    fn view_at_once(&self, py: Python<'_>, flags: c_int) -> Option<usize> {
        let is_at_rest =
            flags == ffi::PyBUF_FULL_RO && self.is_host_accessible() && self.is_at_rest();
        (is_at_rest && self.views.acquire(py, &self.pins).is_ok()).then(|| self.address.number())
    }

    /// Releases a buffer of [`host_buffer`].
    pub(super) fn release_view(&self, py: Python<'_>) {
        self.views.release(py, &self.pins);
    }
}

/// Raises an error, as the host cannot access device memory.
///
/// # Safety
/// None needed; unsafe to have the type of [`host_buffer`].
pub(super) unsafe fn no_buffer(
    memory: &Bound<'_, PyMemory>,
    view: *mut ffi::Py_buffer,
    _flags: c_int,
) -> PyResult<()> {
    // SAFETY: the buffer protocol requires a null `obj` when the request fails.
    unsafe { (*view).obj = std::ptr::null_mut() };
    Err(not_accessible(memory.get()))
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

/// Has memoryviews of host and shared memory call functions without PyO3 around them.
pub(crate) fn set_buffer_slots(py: Python<'_>) -> PyResult<()> {
    macro_rules! set {
        ($class:ident) => {{
            static CHECKED: OnceBox<BufferSlots> = OnceBox::new();
            /// Fills in a `Py_buffer`. Where that is not all there is to do, PyO3's function does it.
            ///
            /// # Safety
            /// For the interpreter's calls, with an object of the class.
            unsafe extern "C" fn get(
                object: *mut ffi::PyObject,
                view: *mut ffi::Py_buffer,
                flags: c_int,
            ) -> c_int {
                // SAFETY: the interpreter passes an object of the class and a view to fill in, in an attached thread.
                unsafe {
                    let memory = borrowed(Python::assume_attached(), &object);
                    if let Some(address) = memory.get().view_at_once(memory.py(), flags) {
                        fill_in(memory, view, address, flags)
                    } else if let Some(get) = CHECKED.get().and_then(|checked| checked.get) {
                        get(object, view, flags)
                    } else {
                        -1 // The slots were set after `CHECKED`.
                    }
                }
            }
            let class = py.get_type::<$class>();
            CHECKED.get_or_init(|| Box::new(BufferSlots::of(&class)));
            let (get, release) = (Some(get as _), Some(release as _));
            // SAFETY: both are for objects of the class.
            unsafe { BufferSlots { get, release }.set(&class)? };
        }};
    }
    set!(MemoryUSMShared);
    set!(MemoryUSMHost);
    Ok(())
}

/// Ends the use of a buffer.
///
/// # Safety
/// For the interpreter's calls, with a memory object, in an attached thread.
unsafe extern "C" fn release(object: *mut ffi::PyObject, _view: *mut ffi::Py_buffer) {
    // SAFETY: as for this function.
    let memory = unsafe { borrowed(Python::assume_attached(), &object) };
    memory.get().release_view(memory.py());
}

/// The object of a slot's call.
///
/// # Safety
/// It must be a memory object.
unsafe fn borrowed<'a, 'py>(
    py: Python<'py>,
    object: &'a *mut ffi::PyObject,
) -> &'a Bound<'py, PyMemory> {
    // SAFETY: the caller holds a reference for the call, and guarantees the class.
    unsafe { Bound::ref_from_ptr(py, object).cast_unchecked() }
}
