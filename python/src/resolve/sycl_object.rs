//! The five kinds of arguments that denote a SYCL context: a filter string, a context, a queue, a capsule of either, and any
//! object with `_get_capsule`; devices are accepted as well, for convenience.

use std::sync::Arc;

use pyo3::exceptions::{PyImportError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{ContextDevice, QueueBinding};
use crate::dpctl::{self, Dpctl, RawReference, SyclCapsule, SyclQueue};
use crate::errors::{OrRaise, caused, normalized, passes};
use crate::interpreter::intern;
use crate::shown::{class_name, naming, repr, text};
use zeusm::sycl::{ContextRef, QueueRef};

/// A SYCL object, resolved to references that zeusm owns.
pub(crate) struct ResolvedSyclObject {
    pub(crate) context: ContextRef,
    /// The queue, which also determines the device.
    queue: Option<SyclQueue>,
    /// The queue's binding, if that is cached.
    binding: Option<Arc<QueueBinding>>,
    /// The capsule of the reference, which [`accept`](Self::accept) consumes.
    capsule: Option<SyclCapsule>,
}

/// Why an object is not resolved.
enum Unresolved {
    /// The caller's own code, or the import of dpctl, raised an exception.
    Raised(PyErr),
    /// What is wrong with the object.
    Wrong(PyErr),
}

impl From<PyErr> for Unresolved {
    fn from(error: PyErr) -> Self {
        Self::Wrong(error)
    }
}

impl ResolvedSyclObject {
    /// Reads an object of any of the kinds. `role` is the argument's name in messages: `queue` or `'syclobj'`.
    ///
    /// # Errors
    /// `TypeError` for other objects; `ValueError` for a filter string that selects no device, and for a consumed capsule;
    /// `RuntimeError` if a device exists and fails. Those of the caller's own code propagate.
    pub(crate) fn read(object: &Bound<'_, PyAny>, role: &str) -> PyResult<Self> {
        let py = object.py();
        if let Some(binding) = QueueBinding::remembered(object) {
            let context = binding.context_device().sycl()?.clone();
            return Ok(Self {
                binding: Some(binding),
                ..Self::of_context(context)
            });
        }
        Self::of_any(object).map_err(|unresolved| {
            let error = match unresolved {
                Unresolved::Raised(error) => return error,
                Unresolved::Wrong(error) => normalized(py, error),
            };
            if passes(py, &error) || error.is_instance_of::<PyImportError>(py) {
                return error;
            }
            let advice = match object.is_instance_of::<PyString>() && !selects_device(object) {
                true => "; a filter string is like 'gpu' or 'level_zero:gpu:0', and dpctl.lsplatform() lists the devices",
                false => "",
            };
            let message = || -> PyResult<String> {
                let (shown, class) = (repr(object)?, class_name(object));
                let error = text(error.value(py))?;
                Ok(format!("{role} is {shown} ({class}): {error}{advice}"))
            };
            let message = match message() {
                Ok(message) => message,
                Err(raised) => return raised,
            };
            let named = if error.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(message)
            } else if error.is_instance_of::<PyRuntimeError>(py) || selects_device(object) {
                PyRuntimeError::new_err(message)
            } else {
                PyValueError::new_err(message)
            };
            caused(py, named, error)
        })
    }

    fn of_any(object: &Bound<'_, PyAny>) -> Result<Self, Unresolved> {
        let py = object.py();
        let attribute = |name| object.getattr_opt(name).map_err(Unresolved::Raised);
        if let Some(capsule) = SyclCapsule::read(object)? {
            return Ok(Self::of_capsule(py, capsule)?);
        }
        let dpctl = Dpctl::get(py).map_err(Unresolved::Raised)?;
        if dpctl::is_of(object, &dpctl.queue)? {
            Ok(Self::of_queue(object)?)
        } else if dpctl::is_of(object, &dpctl.context)? {
            let address = dpctl::address(object, &dpctl.context)?;
            // SAFETY: dpctl's context object holds a valid reference as long as it is alive.
            let context = unsafe { ContextRef::copy_from_raw(address) }.or_raise()?;
            Ok(Self::of_context(context))
        } else if dpctl::is_of(object, &dpctl.device)? || object.is_instance_of::<PyString>() {
            // The queue of dpctl's and dpnp's arrays: zeusm waits for the work on it.
            Ok(Self::of_queue(&dpctl.cached_queue(object)?)?)
        } else if let Some(get_capsule) = attribute(intern!(py, "_get_capsule"))? {
            let capsule = get_capsule.call0().map_err(Unresolved::Raised)?;
            match SyclCapsule::read(&capsule)? {
                Some(capsule) => Ok(Self::of_capsule(py, capsule)?),
                None => Err(PyTypeError::new_err("_get_capsule() did not return a capsule").into()),
            }
        } else if let Some(queue) = attribute(intern!(py, "sycl_queue"))?
            && dpctl::is_of(&queue, &dpctl.queue)?
        {
            // The device of an array of dpctl or dpnp.
            Ok(Self::of_queue(&queue)?)
        } else {
            Err(PyTypeError::new_err(
                "a SYCL object must be a dpctl.SyclQueue, SyclContext or SyclDevice, a filter string, a SyclQueueRef \
                 or SyclContextRef capsule, or have _get_capsule() or a sycl_queue",
            )
            .into())
        }
    }

    /// Reads a `dpctl.SyclQueue`.
    pub(crate) fn of_queue(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        let queue = SyclQueue::new(queue)?;
        let context = queue.reference().context().or_raise()?;
        Ok(Self {
            queue: Some(queue),
            ..Self::of_context(context)
        })
    }

    /// Resolves a reference to a queue, of which it makes a `dpctl.SyclQueue`.
    pub(crate) fn of_queue_reference(py: Python<'_>, queue: &QueueRef) -> PyResult<Self> {
        let capsule = dpctl::new_capsule(py, queue)?;
        Self::of_queue(&Dpctl::get(py)?.queue.bind(py).call1((capsule,))?)
    }

    /// Resolves a reference to a context.
    pub(crate) fn of_context(context: ContextRef) -> Self {
        Self {
            context,
            queue: None,
            binding: None,
            capsule: None,
        }
    }

    fn of_capsule(py: Python<'_>, capsule: SyclCapsule) -> PyResult<Self> {
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
                let queue = unsafe { QueueRef::copy_from_raw(raw) }.or_raise()?;
                Self::of_queue_reference(py, &queue)?
            }
        };
        Ok(Self {
            capsule: Some(capsule),
            ..resolved
        })
    }

    /// Consumes the capsule, if there is one. It is called when no error can occur any more.
    pub(crate) fn accept(&self, py: Python<'_>) {
        if let Some(capsule) = &self.capsule {
            capsule.mark_used(py);
        }
    }

    /// The context and the device; for a SYCL context, its first device.
    pub(crate) fn context_device(&self) -> PyResult<Arc<ContextDevice>> {
        if let Some(binding) = &self.binding {
            return Ok(Arc::clone(binding.context_device()));
        }
        let queue = self.queue.as_ref().map(SyclQueue::reference);
        let device = queue.map(QueueRef::device).transpose();
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
                // The program may give a queue of its own again, but not the object that was made of a capsule.
                let may_recur = self.queue.is_some()
                    && self.capsule.is_none()
                    && Arc::ptr_eq(&self.context_device()?, context_device);
                let binding = QueueBinding::new(Arc::clone(context_device), self.queue);
                if may_recur {
                    binding.remember(py);
                }
                Ok(binding)
            }
        }
    }
}

/// Converts an error of the context or device of an argument. An invalid value is an error of the argument, with its name in
/// the message; a failure of Level Zero, for instance, is not.
pub(crate) fn invalid_argument(role: &str, py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyValueError>(py) {
        naming(error.value(py), |text| {
            PyValueError::new_err(format!("{role}: {text}"))
        })
    } else {
        error
    }
}

/// Whether the object is a device, or a filter string that selects one. A failure to make its queue is then not the string's.
fn selects_device(object: &Bound<'_, PyAny>) -> bool {
    let Ok(dpctl) = Dpctl::get(object.py()) else {
        return false;
    };
    if object.is_instance_of::<PyString>() {
        return dpctl.device.bind(object.py()).call1((object,)).is_ok();
    }
    dpctl::is_of(object, &dpctl.device).unwrap_or(false)
}
