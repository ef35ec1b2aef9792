//! The five kinds of SYCL objects that name a context: filter string, context, queue, capsule of either, and any object
//! with `_get_capsule`; and devices, for convenience.

use std::sync::Arc;

use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{ContextDevice, QueueBinding};
use crate::dpctl::{self, Dpctl, RawReference, SyclCapsule, SyclQueue};
use crate::errors::{Explain, OrRaise};
use zeusm::sycl::{ContextRef, QueueRef};

/// A SYCL object, resolved to references of zeusm's own.
pub(crate) struct ResolvedSyclObject {
    pub(crate) context: ContextRef,
    /// The reference of a queue, from which the device is known.
    reference: Option<QueueRef>,
    /// The object, when it was a `dpctl.SyclQueue`.
    queue: Option<SyclQueue>,
    /// The queue's binding, when the queue was named recently.
    binding: Option<Arc<QueueBinding>>,
    /// The capsule that the reference came from, for [`accept`](Self::accept) to mark.
    capsule: Option<SyclCapsule>,
}

impl ResolvedSyclObject {
    /// Reads any of the kinds. `role` is the argument's name in messages: `queue` or `'syclobj'`.
    ///
    /// # Errors
    /// `TypeError` for anything else; `ValueError` for a filter string that fits no device, and for a capsule that
    /// was used.
    pub(crate) fn read(object: &Bound<'_, PyAny>, role: &str) -> PyResult<Self> {
        let py = object.py();
        if let Some(binding) = QueueBinding::remembered(object) {
            let context = binding.context_device().sycl()?.clone();
            return Ok(Self {
                binding: Some(binding),
                ..Self::of_context(context)
            });
        }
        Self::of_any(object).explain(py, |error| {
            if error.is_instance_of::<PyImportError>(py) {
                return error;
            }
            let message = format!("{role} is {}: {}", describe(object), error.value(py));
            let named = if error.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(message)
            } else {
                PyValueError::new_err(message)
            };
            named.set_cause(py, Some(error));
            named
        })
    }

    fn of_any(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Some(capsule) = SyclCapsule::read(object)? {
            return Self::of_capsule(capsule);
        }
        let dpctl = Dpctl::get(py)?;
        if object.is_instance(dpctl.queue.bind(py))? {
            Self::of_queue(object)
        } else if object.is_instance(dpctl.context.bind(py))? {
            // SAFETY: dpctl's context object holds a valid reference for as long as it lives.
            let context =
                unsafe { ContextRef::copy_from_raw(dpctl::address(object)?) }.or_raise()?;
            Ok(Self {
                context,
                reference: None,
                queue: None,
                binding: None,
                capsule: None,
            })
        } else if object.is_instance(dpctl.device.bind(py))? {
            Self::of_queue(&dpctl.cached_queue(object)?)
        } else if object.is_instance_of::<PyString>() {
            Self::of_queue(&dpctl.queue.bind(py).call1((object,))?)
        } else if let Some(get_capsule) = object.getattr_opt(intern!(py, "_get_capsule"))? {
            match SyclCapsule::read(&get_capsule.call0()?)? {
                Some(capsule) => Self::of_capsule(capsule),
                None => Err(PyTypeError::new_err(
                    "_get_capsule() did not return a capsule",
                )),
            }
        } else {
            Err(PyTypeError::new_err(
                "a SYCL object must be a dpctl.SyclQueue, SyclContext or SyclDevice, a filter string, a SyclQueueRef \
                 or SyclContextRef capsule, or have _get_capsule()",
            ))
        }
    }

    /// Reads a `dpctl.SyclQueue`.
    pub(crate) fn of_queue(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        let queue = SyclQueue::new(queue)?;
        let reference = queue.reference().clone();
        Ok(Self {
            queue: Some(queue),
            ..Self::of_queue_reference(reference)?
        })
    }

    fn of_queue_reference(queue: QueueRef) -> PyResult<Self> {
        Ok(Self {
            context: queue.context().or_raise()?,
            reference: Some(queue),
            queue: None,
            binding: None,
            capsule: None,
        })
    }

    fn of_context(context: ContextRef) -> Self {
        Self {
            context,
            reference: None,
            queue: None,
            binding: None,
            capsule: None,
        }
    }

    fn of_capsule(capsule: SyclCapsule) -> PyResult<Self> {
        let resolved = match capsule.reference {
            RawReference::Context(raw) => {
                // SAFETY: by dpctl's protocol a capsule of this name holds a valid context reference.
                Self::of_context(match unsafe { ContextDevice::known_context(raw) } {
                    Some(known) => known,
                    // SAFETY: as above.
                    None => unsafe { ContextRef::copy_from_raw(raw) }.or_raise()?,
                })
            }
            RawReference::Queue(raw) => {
                // SAFETY: by dpctl's protocol a capsule of this name holds a valid queue reference.
                Self::of_queue_reference(unsafe { QueueRef::copy_from_raw(raw) }.or_raise()?)?
            }
        };
        Ok(Self {
            capsule: Some(capsule),
            ..resolved
        })
    }

    /// Marks the capsule that this came from as used, once nothing can be refused any more.
    pub(crate) fn accept(&self, py: Python<'_>) {
        if let Some(capsule) = &self.capsule {
            capsule.mark_used(py);
        }
    }

    /// Its context and device: for a context, the context's first device.
    pub(crate) fn context_device(&self) -> PyResult<Arc<ContextDevice>> {
        if let Some(binding) = &self.binding {
            return Ok(Arc::clone(binding.context_device()));
        }
        let device = self.reference.as_ref().map(QueueRef::device).transpose();
        ContextDevice::in_sycl(&self.context, device.or_raise()?.as_ref())
    }

    /// [Accepts](Self::accept) the object, and binds its queue to its context and device.
    pub(crate) fn bind(self, py: Python<'_>) -> PyResult<Arc<QueueBinding>> {
        let context_device = self.context_device()?;
        self.bind_at(py, &context_device)
    }

    /// [Accepts](Self::accept) the object, and binds its queue to a device of its context.
    pub(crate) fn bind_at(
        self,
        py: Python<'_>,
        context_device: &Arc<ContextDevice>,
    ) -> PyResult<Arc<QueueBinding>> {
        self.accept(py);
        match self.binding {
            Some(binding) if Arc::ptr_eq(binding.context_device(), context_device) => Ok(binding),
            Some(binding) => Ok(binding.with_device(py, context_device)),
            None => {
                let is_own =
                    self.queue.is_some() && Arc::ptr_eq(&self.context_device()?, context_device);
                let binding = QueueBinding::new(py, Arc::clone(context_device), self.queue);
                if is_own {
                    binding.remember(py);
                }
                Ok(binding)
            }
        }
    }
}

/// An error about the context or device that an argument names. A wrong value is the argument's error and gets its name;
/// a failure of Level Zero's, for instance, does not.
pub(crate) fn invalid_argument(role: &str, py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(format!("{role}: {}", error.value(py)))
    } else {
        error
    }
}

/// The object as error messages show it.
fn describe(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    let class = class
        .name()
        .map_or_else(|_| "?".to_owned(), |name| name.to_string());
    object
        .repr()
        .map_or_else(|_| class.clone(), |text| format!("{text} ({class})"))
}
