//! Capsules with SYCL references, by dpctl's rules: a consumer copies the reference and renames the capsule; the
//! capsule's own destructor deletes the original under either name.

use std::ffi::{CStr, c_void};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::place::Place;
use crate::errors::OrRaise;
use zeusm::sycl::{self, Capsule, ContextRef, QueueRef};

/// A SYCL reference out of a capsule.
pub(super) enum Reference {
    Context(ContextRef),
    Queue(QueueRef),
}

/// Makes a capsule, `SyclContextRef` for instance. A consumer copies the reference, so that all capsules may have the same
/// one; each keeps it alive.
pub(super) fn of<'py, C: Capsule>(
    py: Python<'py>,
    object: &sycl::Reference<C>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the name is static, the destructor fits the context that is set, and the interpreter is attached. Setting
    // it cannot fail for a capsule.
    unsafe {
        let capsule = ffi::PyCapsule_New(
            object.as_raw(),
            sycl::Reference::<C>::CAPSULE.as_ptr(),
            Some(release::<C>),
        );
        let capsule = Bound::from_owned_ptr_or_err(py, capsule)?;
        let keeper = object.clone().into_keeper();
        ffi::PyCapsule_SetContext(capsule.as_ptr(), keeper.cast_mut());
        Ok(capsule)
    }
}

/// Lets go of the reference, whether or not it was consumed (that is, copied).
unsafe extern "C" fn release<C: Capsule>(capsule: *mut ffi::PyObject) {
    // SAFETY: `of` put what keeps the reference into the capsule, and this runs once.
    unsafe {
        let keeper = ffi::PyCapsule_GetContext(capsule);
        if !keeper.is_null() {
            sycl::Reference::<C>::release(keeper);
        }
    }
}

/// A capsule whose reference was copied, and the name that says so. It is given when all is well, so that a consumer
/// that refuses what came with the capsule leaves it as it was.
pub(super) struct Served {
    capsule: Py<PyAny>,
    name: &'static CStr,
}

impl Served {
    /// Gives the capsule its name.
    pub(super) fn mark(&self, _py: Python<'_>) {
        // SAFETY: the interpreter is attached and the name is static; this cannot fail for a capsule.
        unsafe { ffi::PyCapsule_SetName(self.capsule.as_ptr(), self.name.as_ptr()) };
    }
}

/// Copies the reference out of a capsule; `None` when `object` is no capsule.
pub(super) fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<(Reference, Served)>> {
    let capsule = object.as_ptr();
    // SAFETY: the interpreter is attached and `object` is alive.
    if unsafe { ffi::PyCapsule_CheckExact(capsule) } == 0 {
        return Ok(None);
    }
    let (reference, name) = if let Some(raw) = pointer(capsule, ContextRef::CAPSULE) {
        // SAFETY: by dpctl's rules a capsule of this name holds a valid context reference.
        let context = match unsafe { Place::known_context(raw) } {
            Some(known) => known,
            // SAFETY: as just said.
            None => unsafe { ContextRef::copy_from_raw(raw) }.or_raise()?,
        };
        (Reference::Context(context), ContextRef::USED_CAPSULE)
    } else if let Some(raw) = pointer(capsule, QueueRef::CAPSULE) {
        // SAFETY: by dpctl's rules a capsule of this name holds a valid queue reference.
        let queue = unsafe { QueueRef::copy_from_raw(raw) }.or_raise()?;
        (Reference::Queue(queue), QueueRef::USED_CAPSULE)
    } else {
        return Err(PyValueError::new_err(format!(
            "a capsule with a SYCL reference must be named SyclContextRef or SyclQueueRef and not be used yet; \
             this is {}",
            object.repr()?
        )));
    };
    let capsule = object.clone().unbind();
    Ok(Some((reference, Served { capsule, name })))
}

/// What a capsule of that name holds.
fn pointer(capsule: *mut ffi::PyObject, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `capsule` is a capsule and the interpreter is attached; the name is checked before it is asked for.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 0 {
            return None;
        }
        let held = ffi::PyCapsule_GetPointer(capsule, name.as_ptr());
        (!held.is_null()).then_some(held)
    }
}
