//! `dpctl.SyclQueue` objects, with a reference of zeusm's own to the queue.

use std::mem;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use super::address;
use crate::errors::OrRaise;
use crate::interpreter::detach;
use zeusm::process::{Local, Owned};
use zeusm::sycl::QueueRef;

/// A `dpctl.SyclQueue`.
pub(crate) struct SyclQueue {
    object: Py<PyAny>,
    /// A fork's child does not drop it, as SYCL takes locks for that.
    reference: Owned<QueueRef>,
    /// Whether an inherited queue responds in this process; set by the first check.
    responds: Local<bool>,
}

/// The timeout of a fork's child for the query whether an inherited queue is idle, which only takes locks.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for work on the queue after that; the work may be the child's own.
const WORK_TIMEOUT: Duration = Duration::from_secs(5);

impl SyclQueue {
    /// Reads a `dpctl.SyclQueue`.
    pub(crate) fn new(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        // SAFETY: dpctl's queue object holds a valid reference as long as it is alive.
        let reference = unsafe { QueueRef::copy_from_raw(address(queue)?) }.or_raise()?;
        Ok(Self {
            reference: Owned::new(reference),
            object: queue.clone().unbind(),
            responds: Local::new(),
        })
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            reference: Owned::new((*self.reference).clone()),
            responds: Local::new(),
        }
    }

    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.object
    }

    pub(crate) fn reference(&self) -> &QueueRef {
        &self.reference
    }

    /// Whether SYCL still responds for the queue. At a fork, a thread of the parent may have been submitting: it may hold
    /// locks of SYCL, or the queue may have a command that never completes. The child has no work on such a queue.
    pub(crate) fn responds(&self, py: Python<'_>) -> bool {
        if !self.reference.is_inherited() {
            return true;
        }
        *self.responds.get_or_init(|| {
            let queue = (*self.reference).clone();
            let (sender, receiver) = mpsc::channel();
            let probe = thread::Builder::new().name("zeusm-inherited".to_owned());
            let started = probe.spawn(move || {
                // Sending fails once the receiver has timed out.
                let is_idle = queue.is_idle();
                let _ = sender.send(is_idle);
                let _ = is_idle || sender.send(queue.wait().is_ok()).is_ok();
                // The drop would take locks of SYCL.
                mem::forget(queue);
            });
            started.is_ok()
                && detach(py, move || match receiver.recv_timeout(LOCK_TIMEOUT) {
                    Ok(false) => receiver.recv_timeout(WORK_TIMEOUT).unwrap_or(false),
                    result => result.unwrap_or(false),
                })
        })
    }

    /// Waits for all commands that were submitted to it.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        if !self.responds(py) || self.reference.is_idle() {
            return Ok(());
        }
        // This does not call dpctl's method, in which an exception of SYCL would terminate the process.
        detach(py, || self.reference.wait()).or_raise()
    }
}
