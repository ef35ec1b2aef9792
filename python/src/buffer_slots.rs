//! The functions of a class for the buffer protocol, without PyO3 around them.
//!
//! PyO3's functions catch panics and count nested calls, which takes as long as filling in a `Py_buffer`. The stable ABI has
//! no field to set other ones, so it is found in the class by the functions that it has.

use std::mem::transmute;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The functions that fill in and release a buffer, in the order of the interpreter's `PyBufferProcs`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BufferSlots {
    pub(crate) get: Option<ffi::getbufferproc>,
    pub(crate) release: Option<ffi::releasebufferproc>,
}

impl BufferSlots {
    /// The functions of a class.
    pub(crate) fn of(class: &Bound<'_, PyType>) -> Self {
        let class = class.as_type_ptr();
        // SAFETY: it is a class, the thread is attached, and the slots have these types.
        unsafe {
            Self {
                get: transmute::<*mut _, Option<_>>(ffi::PyType_GetSlot(
                    class,
                    ffi::Py_bf_getbuffer,
                )),
                release: transmute::<*mut _, Option<_>>(ffi::PyType_GetSlot(
                    class,
                    ffi::Py_bf_releasebuffer,
                )),
            }
        }
    }

    /// Has requests for a buffer of the class call these functions. Without effect where the field cannot be found.
    ///
    /// # Errors
    /// Those of reading the size of the class.
    ///
    /// # Safety
    /// The functions must be for objects of the class.
    pub(crate) unsafe fn set(self, class: &Bound<'_, PyType>) -> PyResult<()> {
        let before = Self::of(class).addresses();
        let size: usize = class.get_type().getattr("__basicsize__")?.extract()?;
        let words = size / size_of::<usize>();
        let field = |word| class.as_ptr().cast::<usize>().wrapping_add(word);
        let is_field = |word: &usize| {
            // SAFETY: both words are within the object, whose size its class gives.
            unsafe { field(*word).cast::<[usize; 2]>().read() == before }
        };
        let Some(word) = (0..words.saturating_sub(1)).find(is_field) else {
            return Ok(());
        };
        let field = field(word).cast::<[usize; 2]>();
        // SAFETY: as above, and the GIL is held.
        unsafe {
            field.write(self.addresses());
            if Self::of(class).addresses() != self.addresses() {
                field.write(before);
            }
        }
        Ok(())
    }

    fn addresses(self) -> [usize; 2] {
        [
            self.get.map_or(0, |get| get as usize),
            self.release.map_or(0, |release| release as usize),
        ]
    }
}
