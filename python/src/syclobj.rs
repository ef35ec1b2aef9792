//! The five kinds of SYCL objects that name a place: filter string, context, queue, capsule of either, and any object
//! with `_get_capsule`; and devices, for convenience.

use std::sync::Arc;

use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::capsule::{self, Reference, Served};
use super::dpctl::{self, Dpctl};
use super::errors::{Explain, OrRaise};
use super::place::Place;
use super::spot::{Spot, SyclQueue};
use zeusm::sycl::{ContextRef, QueueRef};

/// What a SYCL object names.
pub(super) struct Target {
    pub(super) context: ContextRef,
    /// The queue's reference, when it was a queue: it knows the device.
    reference: Option<QueueRef>,
    /// The `dpctl.SyclQueue`, when it was one.
    queue: Option<SyclQueue>,
    /// Its spot, when it was named lately.
    spot: Option<Arc<Spot>>,
    /// The capsule, when it was one, for [`accept`](Self::accept) to mark.
    served: Option<Served>,
}

impl Target {
    /// Reads any of the kinds. `role` is what the caller calls the object: `queue` or `'syclobj'`.
    ///
    /// # Errors
    /// `TypeError` for anything else; `ValueError` for a filter string that fits no device, and for a capsule that
    /// was used.
    pub(super) fn read(object: &Bound<'_, PyAny>, role: &str) -> PyResult<Self> {
        let py = object.py();
        if let Some(spot) = Spot::remembered(object) {
            return Ok(Self {
                context: spot.place().sycl()?.clone(),
                reference: None,
                queue: None,
                spot: Some(spot),
                served: None,
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
        if let Some((reference, served)) = capsule::read(object)? {
            return Self::of_reference(reference, Some(served));
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
                spot: None,
                served: None,
            })
        } else if object.is_instance(dpctl.device.bind(py))? {
            Self::of_queue(&dpctl.cached_queue(object)?)
        } else if object.is_instance_of::<PyString>() {
            Self::of_queue(&dpctl.queue.bind(py).call1((object,))?)
        } else if let Some(get_capsule) = object.getattr_opt(intern!(py, "_get_capsule"))? {
            match capsule::read(&get_capsule.call0()?)? {
                Some((reference, served)) => Self::of_reference(reference, Some(served)),
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
    pub(super) fn of_queue(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        let queue = SyclQueue::new(queue)?;
        let reference = Reference::Queue(queue.reference().clone());
        let mut target = Self::of_reference(reference, None)?;
        target.queue = Some(queue);
        Ok(target)
    }

    fn of_reference(reference: Reference, served: Option<Served>) -> PyResult<Self> {
        let (context, reference) = match reference {
            Reference::Context(context) => (context, None),
            Reference::Queue(queue) => (queue.context().or_raise()?, Some(queue)),
        };
        Ok(Self {
            context,
            reference,
            queue: None,
            spot: None,
            served,
        })
    }

    /// Marks the capsule that this came from as used, once nothing can be refused any more.
    pub(super) fn accept(&self, py: Python<'_>) {
        if let Some(served) = &self.served {
            served.mark(py);
        }
    }

    /// The place it names.
    pub(super) fn place(&self) -> PyResult<Arc<Place>> {
        if let Some(spot) = &self.spot {
            return Ok(Arc::clone(spot.place()));
        }
        let device = self
            .reference
            .as_ref()
            .map(QueueRef::device)
            .transpose()
            .or_raise()?;
        Place::in_sycl(&self.context, device.as_ref())
    }

    /// The queue at the place it names.
    pub(super) fn spot(self, py: Python<'_>) -> PyResult<Arc<Spot>> {
        let place = self.place()?;
        self.spot_at(py, &place)
    }

    /// The queue at a place of its context.
    pub(super) fn spot_at(self, py: Python<'_>, place: &Arc<Place>) -> PyResult<Arc<Spot>> {
        match self.spot {
            Some(spot) if Arc::ptr_eq(spot.place(), place) => Ok(spot),
            Some(spot) => Ok(spot.queue_at(py, place)),
            None => {
                let is_own = self.queue.is_some() && Arc::ptr_eq(&self.place()?, place);
                let spot = Spot::new(py, Arc::clone(place), self.queue);
                if is_own {
                    spot.remember(py);
                }
                Ok(spot)
            }
        }
    }
}

/// An error about the place that a field or an argument names. Only a wrong value is the field's fault: a failure of
/// Level Zero's, for instance, stays what it is.
pub(super) fn named(role: &str, py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(format!("{role}: {}", error.value(py)))
    } else {
        error
    }
}

/// The object as messages show it.
fn describe(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    let class = class
        .name()
        .map_or_else(|_| "?".to_owned(), |name| name.to_string());
    object
        .repr()
        .map_or_else(|_| class.clone(), |text| format!("{text} ({class})"))
}
