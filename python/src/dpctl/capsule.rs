//! Capsules with SYCL references, by dpctl's protocol: a consumer copies the reference and renames the capsule; the
//! capsule's own destructor deletes the original under either name.

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::capsule_pointer;
use crate::shown::repr;
use zeusm::sycl::{self, Capsule, ContextRef, QueueRef, RawRef};

/// An unused capsule with a SYCL reference.
pub(crate) struct SyclCapsule {
    object: Py<PyAny>,
    /// Valid as long as the capsule is alive.
    pub(crate) reference: RawReference,
}

/// The reference in a capsule, by its class.
#[derive(Clone, Copy)]
pub(crate) enum RawReference {
    Context(RawRef),
    Queue(RawRef),
}

impl SyclCapsule {
    /// Reads a capsule; `None` when `object` is not a capsule.
    ///
    /// # Errors
    /// `ValueError` for a capsule with another name, such as a consumed one.
    pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let capsule = object.as_ptr();
        // SAFETY: the interpreter is attached and `object` is alive.
        if unsafe { ffi::PyCapsule_CheckExact(capsule) } == 0 {
            return Ok(None);
        }
        let context = capsule_pointer(capsule, ContextRef::CAPSULE).map(RawReference::Context);
        let queue = || capsule_pointer(capsule, QueueRef::CAPSULE).map(RawReference::Queue);
        let Some(reference) = context.or_else(queue) else {
            return Err(PyValueError::new_err(format!(
                "a capsule with a SYCL reference must be named SyclContextRef or SyclQueueRef and not be used yet; \
                 this is {}",
                repr(object)?
            )));
        };
        let object = object.clone().unbind();
        Ok(Some(Self { object, reference }))
    }

    /// Consumes the capsule: renames it, so that no other consumer copies the reference. A consumer that raises an error
    /// does not call this, and leaves the capsule unused.
    pub(crate) fn mark_used(&self, _py: Python<'_>) {
        let name = match self.reference {
            RawReference::Context(_) => ContextRef::USED_CAPSULE,
            RawReference::Queue(_) => QueueRef::USED_CAPSULE,
        };
        // SAFETY: the interpreter is attached and the name is static; this cannot fail for a capsule.
        unsafe { ffi::PyCapsule_SetName(self.object.as_ptr(), name.as_ptr()) };
    }
}

/// Makes a capsule, `SyclContextRef` for instance. Capsules may share a reference, as a consumer copies it; each capsule
/// keeps it alive.
pub(crate) fn new<'py, C: Capsule>(
    py: Python<'py>,
    object: &sycl::Reference<C>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the name is static, the destructor fits the context that is set, and the interpreter is attached. Setting
    // the context cannot fail for a capsule.
    unsafe {
        let capsule = ffi::PyCapsule_New(
            object.as_raw(),
            sycl::Reference::<C>::CAPSULE.as_ptr(),
            Some(release::<C>),
        );
        let capsule = Bound::from_owned_ptr_or_err(py, capsule)?;
        let context = object.clone().into_capsule_context();
        ffi::PyCapsule_SetContext(capsule.as_ptr(), context.cast_mut());
        Ok(capsule)
    }
}

/// The capsule's destructor: drops its share of the reference, whether or not the capsule was consumed.
///
/// # Safety
/// For the interpreter's call at the end of a capsule that `new` made.
unsafe extern "C" fn release<C: Capsule>(capsule: *mut ffi::PyObject) {
    // SAFETY: `new` put an owner of the reference into the capsule's context, and the destructor runs once.
    unsafe {
        let context = ffi::PyCapsule_GetContext(capsule);
        if !context.is_null() {
            sycl::Reference::<C>::release(context);
        }
    }
}
