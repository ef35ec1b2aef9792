//! The function for buffers of memory without PyO3 around it, in a build for one version of Python: PyO3's functions catch panics
//! and count nested calls, which takes as long as filling in a `Py_buffer`.

use std::ffi::c_int;

use once_cell::race::OnceBox;
use pyo3::ffi;
use pyo3::prelude::*;

use super::base::PyMemory;
use super::buffer::fill_in;
use super::classes::{MemoryUSMHost, MemoryUSMShared};
use crate::slots;

/// PyO3's function, which both classes inherit. It does what is more than filling in the structure.
static CHECKED: OnceBox<ffi::getbufferproc> = OnceBox::new();

/// Has memoryviews of host and shared memory call the functions of this file.
pub(crate) fn shorten(py: Python<'_>) {
    for class in [
        py.get_type::<MemoryUSMShared>(),
        py.get_type::<MemoryUSMHost>(),
    ] {
        // SAFETY: they are for these classes, which only the import of the module has so far.
        if let Some(checked) = unsafe { slots::replace_buffer(&class, get, release) } {
            CHECKED.get_or_init(|| Box::new(checked));
        }
    }
}

/// Fills in a `Py_buffer`.
///
/// # Safety
/// For the interpreter's calls, with an object of one of the classes.
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
        } else if let Some(checked) = CHECKED.get() {
            checked(object, view, flags)
        } else {
            -1 // It was set before the first call.
        }
    }
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

impl PyMemory {
    /// Counts a buffer for a `memoryview` and returns the address, if no operation may use the memory: most requests find it so.
    #[inline]
    fn view_at_once(&self, py: Python<'_>, flags: c_int) -> Option<usize> {
        let is_at_rest =
            flags == ffi::PyBUF_FULL_RO && self.kind.is_host_accessible() && self.is_at_rest();
        (is_at_rest && self.views.acquire(py, &self.pins).is_ok()).then_some(self.address)
    }
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
