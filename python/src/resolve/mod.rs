//! Resolves a Python argument that denotes a SYCL object to the context, the device and the SYCL queue of memory.
//!
//! [`ResolvedSyclObject`] reads the object, of any supported kind. A [`ContextDevice`] is a context and a device of it; a
//! [`QueueBinding`] is a [`ContextDevice`] and its SYCL queue. This layer makes no memory objects.

mod barriers;
mod context_device;
mod default;
mod dlpack_device;
#[cfg(target_os = "linux")]
mod jax;
#[cfg(windows)]
#[path = "jax/windows.rs"]
mod jax;
mod queue_binding;
mod sycl_object;

use std::sync::Arc;

use pyo3::prelude::*;

pub(crate) use context_device::ContextDevice;
pub(crate) use default::{BindingRef, default_binding, pointer_attributes};
pub(crate) use dlpack_device::{DlpackDevice, exchange_host_memory, root_device};
pub(crate) use jax::of_jax;
pub(crate) use queue_binding::{QueueBinding, forget};
pub(crate) use sycl_object::{ResolvedSyclObject, invalid_argument};

/// The queue binding of a SYCL object. `role` is the argument's name in messages.
///
/// # Errors
/// As [`ResolvedSyclObject::read`], and `ValueError` for a SYCL object that is not of Level Zero.
pub(crate) fn binding(object: &Bound<'_, PyAny>, role: &str) -> PyResult<Arc<QueueBinding>> {
    if let Some(known) = QueueBinding::remembered(object) {
        return Ok(known);
    }
    let py = object.py();
    let resolved = ResolvedSyclObject::read(object, role)?;
    let context_device = resolved.context_device();
    let context_device = context_device.map_err(|error| invalid_argument(role, py, error))?;
    resolved.bind_at(py, &context_device)
}

/// The queue binding of an optional argument, by default the [default one](default_binding).
pub(crate) fn binding_or_default(
    py: Python<'_>,
    object: Option<&Bound<'_, PyAny>>,
    role: &str,
) -> PyResult<Arc<QueueBinding>> {
    match object {
        Some(object) => binding(object, role),
        None => default_binding(py).cloned(),
    }
}
