//! The default queue binding, for memory that is allocated without a `queue`.

use std::ops::Deref;
use std::sync::Arc;

use once_cell::race::OnceBox;
use pyo3::prelude::*;

use super::context_device::driver_of;
use super::{ContextDevice, QueueBinding, ResolvedSyclObject};
use crate::dpctl::{Dpctl, device_reference, show_level_zero, warn_of_selector};
use crate::errors::OrRaise;
use crate::imports;
use crate::interpreter::detach;
use crate::shown::{class_name, text};
use zeusm::sycl::Backend;
use zeusm::usm::PointerAttributes;

/// No lock is used, as another thread could hold it at a fork. If two threads make a binding concurrently, one of the two is
/// dropped.
static DEFAULT: OnceBox<Arc<QueueBinding>> = OnceBox::new();

/// A reference to a binding. One to the default binding is not counted, as that is never dropped: counting would be a tenth of
/// the time of an allocation.
pub(crate) struct BindingRef(Option<Arc<QueueBinding>>);

impl BindingRef {
    #[inline]
    pub(crate) fn new(binding: &Arc<QueueBinding>) -> Self {
        let is_default = DEFAULT
            .get()
            .is_some_and(|default| Arc::ptr_eq(default, binding));
        Self((!is_default).then(|| Arc::clone(binding)))
    }
}

impl From<Arc<QueueBinding>> for BindingRef {
    fn from(binding: Arc<QueueBinding>) -> Self {
        Self(Some(binding))
    }
}

impl Deref for BindingRef {
    type Target = Arc<QueueBinding>;

    #[inline]
    fn deref(&self) -> &Arc<QueueBinding> {
        match (&self.0, DEFAULT.get()) {
            (Some(binding), _) | (None, Some(binding)) => binding,
            (None, None) => unreachable!("the default binding is there before a reference to it"),
        }
    }
}

/// The binding of dpctl's cached queue if its default device is a Level Zero device, else a context of zeusm's own.
pub(crate) fn default_binding(py: Python<'_>) -> PyResult<&'static Arc<QueueBinding>> {
    DEFAULT.get_or_try_init(|| {
        let binding = match default_queue(py)? {
            Ok(queue) => ResolvedSyclObject::of_queue(&queue)?.bind(py)?,
            Err(reason) => {
                let own = detach(py, || ContextDevice::without_sycl(reason));
                QueueBinding::new(own.or_raise()?, None)
            }
        };
        Ok(Box::new(binding))
    })
}

/// The context, the device and the attributes of a pointer in the default context.
pub(crate) fn pointer_attributes(
    py: Python<'_>,
    pointer: usize,
) -> PyResult<(Arc<ContextDevice>, PointerAttributes)> {
    let context_device = default_binding(py)?.context_device();
    match context_device.sycl() {
        Ok(context) => ContextDevice::of_pointer(context, pointer),
        Err(_) => {
            let context = context_device.context();
            let attributes = context.pointer_attributes(pointer).or_raise()?;
            Ok((Arc::clone(context_device), attributes))
        }
    }
}

/// dpctl's cached queue of its default device, or the reason why there is none on Level Zero, which is remembered.
///
/// # Errors
/// Those that a later call may not have.
fn default_queue(py: Python<'_>) -> PyResult<Result<Bound<'_, PyAny>, String>> {
    let dpctl = match Dpctl::get(py) {
        Ok(dpctl) => dpctl,
        Err(error) if imports::fails_again(py, &error, "dpctl")? => {
            return Ok(Err(text(error.value(py))?));
        }
        Err(error) => return Err(error),
    };
    let device = match dpctl.default_device(py)? {
        Ok(device) => device,
        Err(error) => {
            let error = error.value(py);
            let reason = format!(
                "dpctl has no default device ({}: {}): {}",
                class_name(error),
                text(error)?,
                show_level_zero()
            );
            warn_of_selector(py, &reason)?;
            return Ok(Err(reason));
        }
    };
    let backend = device_reference(&device)?.backend();
    if backend != Backend::LevelZero {
        let reason = format!(
            "dpctl's default device, {}, is of the {backend} backend; give a Level Zero queue, or {}",
            text(&device.getattr("filter_string")?)?,
            show_level_zero()
        );
        warn_of_selector(py, &reason)?;
        return Ok(Err(reason));
    }
    let queue = dpctl.cached_queue(&device)?;
    let context = ResolvedSyclObject::of_queue(&queue)?.context;
    Ok(match driver_of(&context) {
        Err(error) => Err(text(error.value(py))?),
        Ok(_) => Ok(queue),
    })
}
