//! Events of barriers, in the place of SYCL events that belong to no queue.
//!
//! SYCL's second Level Zero adapter resets the native event of an event without a queue as soon as the last reference to it is
//! dropped. A command that still waits for it never starts then. The event of a barrier is valid until the commands that wait for
//! it have started, as those of all of a queue's commands are.

use std::collections::VecDeque;
use std::mem;

use once_cell::race::OnceBox;
use pyo3::prelude::*;

use super::ContextDevice;
use crate::dpctl;
use crate::errors::OrRaise;
use crate::interpreter::intern;
use zeusm::process::Mutex;
use zeusm::sycl::EventRef;

/// The barriers of a context and device.
#[derive(Default)]
pub(super) struct Barriers {
    /// Their queue, made on first use.
    queue: OnceBox<Py<PyAny>>,
    in_flight: Mutex<VecDeque<InFlight>>,
}

/// A barrier, and the event that it waits for.
struct InFlight {
    barrier: EventRef,
    _event: EventRef,
}

impl ContextDevice {
    /// A `dpctl.SyclEvent` that is complete when `event` is.
    pub(crate) fn barrier_after<'py>(
        &self,
        py: Python<'py>,
        event: EventRef,
        of_dpctl: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Barriers { queue, in_flight } = &self.barriers;
        let queue = queue.get_or_try_init(|| {
            let queue = self.new_sycl_queue(py)?;
            Ok::<_, PyErr>(Box::new(queue.unbind()))
        })?;
        let submit = intern!(py, "submit_barrier");
        let made = queue.bind(py).call_method1(submit, ([of_dpctl],))?;
        // SAFETY: it is a `dpctl.SyclEvent`, which owns its reference.
        let barrier = unsafe { EventRef::copy_from_raw(dpctl::address(&made)?) }.or_raise()?;
        let mut complete = Vec::new();
        let mut in_flight = in_flight.lock();
        while let Some(first) = in_flight.pop_front_if(|first| first.barrier.is_complete()) {
            complete.push(first);
        }
        in_flight.push_back(InFlight {
            barrier,
            _event: event,
        });
        Ok(made)
    }
}

impl Drop for Barriers {
    fn drop(&mut self) {
        let in_flight = self.in_flight.get_mut().drain(..);
        in_flight
            .filter(|entry| !entry.barrier.is_complete())
            .for_each(mem::forget);
    }
}
