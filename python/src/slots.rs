//! Fields of the classes that PyO3 leaves empty, or fills with functions that take longer.
//!
//! The headers of one version of CPython describe them, and its stable ABI does not: a module for all versions is without this.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Has calls of exactly this class, and of no subclass, call `vectorcall` (PEP 590).
///
/// # Safety
/// The function must be for calls of the class, which no other thread uses yet.
pub(crate) unsafe fn set_vectorcall(class: &Bound<'_, PyType>, vectorcall: ffi::vectorcallfunc) {
    // SAFETY: it is a class, whose structure the headers describe; the caller guarantees that no other thread reads it.
    unsafe { (*class.as_type_ptr()).tp_vectorcall = Some(vectorcall) };
}

/// Has requests for a buffer of the class, and their ends, call these functions; returns the function before for requests.
///
/// # Safety
/// The functions must be for objects of the class, which no other thread uses yet.
pub(crate) unsafe fn replace_buffer(
    class: &Bound<'_, PyType>,
    get: ffi::getbufferproc,
    release: ffi::releasebufferproc,
) -> Option<ffi::getbufferproc> {
    // SAFETY: as above. The structure that a class has for its slots contains those of buffers.
    let slots = unsafe { &mut *(*class.as_type_ptr()).tp_as_buffer };
    slots.bf_releasebuffer = Some(release);
    slots.bf_getbuffer.replace(get)
}
