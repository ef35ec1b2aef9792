//! `dpctl.SyclQueue` objects, with a reference of zeusm's own to the queue.

use std::mem;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use super::address;
use crate::errors::OrRaise;
use zeusm::process::{Local, Owned};
use zeusm::sycl::QueueRef;

/// A `dpctl.SyclQueue`.
pub(crate) struct SyclQueue {
    object: Py<PyAny>,
    /// Not dropped by a fork's child, as SYCL takes locks to drop it.
    reference: Owned<QueueRef>,
    /// Whether an inherited queue responds in this process, once that has been tried.
    responds: Local<bool>,
}

/// How long a fork's child waits for an inherited queue to report whether it is idle, which takes locks only.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it then waits for work on the queue, which may be its own.
const WORK_TIMEOUT: Duration = Duration::from_secs(5);

impl SyclQueue {
    /// Reads a `dpctl.SyclQueue`.
    pub(crate) fn new(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        // SAFETY: dpctl's queue object holds a valid reference for as long as it lives.
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

    /// Whether SYCL still responds for the queue. At a fork, a thread of the parent may have been in the middle of a
    /// submission, with locks of SYCL's held or a command that nothing will complete. Such a queue has no work of the
    /// child's.
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
                // SYCL would take locks to drop it.
                mem::forget(queue);
            });
            started.is_ok()
                && py.detach(move || match receiver.recv_timeout(LOCK_TIMEOUT) {
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
        // Not through dpctl's object, where an exception of SYCL's would end the process.
        py.detach(|| self.reference.wait()).or_raise()
    }
}
