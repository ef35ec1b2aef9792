//! `dpctl.SyclQueue` objects, with a reference of zeusm's own to the queue.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::classes::{Dpctl, queue_reference};
use crate::errors::OrRaise;
use crate::interpreter::{detach, has_other_threads};
use zeusm::sycl::{Error, QueueRef};
use zeusm_process::{Local, Owned};

/// A `dpctl.SyclQueue`.
pub(crate) struct SyclQueue {
    object: Py<PyAny>,
    /// A fork's child does not drop it, as SYCL takes locks for that.
    reference: Owned<QueueRef>,
    /// Whether an inherited queue responds in this process; set by the first check, for all clones.
    responds: Arc<Local<bool>>,
}

/// The timeout of a fork's child for the query whether an inherited queue is idle, which only takes locks.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for work on the queue after that; the work may be the child's own.
const WORK_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a fork's child for its own work, after one for the query whether the queue is idle.
const CHILD_TIMEOUT: Duration = Duration::from_secs(10);
/// Whether a wait of a fork's child for its work on a queue has timed out. It holds for the child's children, too, which inherit
/// the locks.
static STUCK: AtomicBool = AtomicBool::new(false);

impl SyclQueue {
    /// Reads a `dpctl.SyclQueue`.
    pub(crate) fn new(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            reference: Owned::new(queue_reference(queue)?),
            object: queue.clone().unbind(),
            responds: Arc::default(),
        })
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            reference: Owned::new((*self.reference).clone()),
            responds: Arc::clone(&self.responds),
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
    ///
    /// # Errors
    /// `OSError` when no thread can be started for the query.
    fn responds(&self, py: Python<'_>) -> PyResult<bool> {
        if !self.reference.is_inherited() {
            return Ok(true);
        }
        let responds = self.responds.get_or_try_init(|| {
            let answer = self.probe(py, LOCK_TIMEOUT, WORK_TIMEOUT)?;
            PyResult::Ok(matches!(answer, Answer::Idle | Answer::Waited(Ok(()))))
        })?;
        Ok(*responds)
    }

    /// Whether commands that were submitted to it may not be complete, as far as this process waits for them.
    ///
    /// # Errors
    /// `RuntimeError` in a fork's child where SYCL has not completed the work on a queue, this one or another. Then a thread is
    /// in SYCL's wait for good, and may hold locks that a query takes.
    pub(crate) fn has_work(&self, py: Python<'_>) -> PyResult<bool> {
        if STUCK.load(Ordering::Relaxed) {
            return Err(stuck());
        }
        // The query takes the queue's locks, which another thread may hold during its wait, as may a submission that waits for a
        // host task; a host task needs the GIL.
        Ok(self.responds(py)? && !detach(py, || self.reference.is_idle()))
    }

    /// Waits for all commands that were submitted to it.
    ///
    /// # Errors
    /// The error of SYCL's wait, and `RuntimeError` in a fork's child where SYCL does not complete them.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        if !self.has_work(py)? {
            return Ok(());
        }
        if Dpctl::get(py)?.is_inherited() {
            return self.finish_in_child(py);
        }
        // Neither wait is dpctl's method, in which an exception of SYCL would terminate the process.
        let wait = if has_other_threads(py)? {
            QueueRef::wait_beside_submissions
        } else {
            QueueRef::wait // It waits without polls.
        };
        detach(py, || wait(&self.reference)).or_raise()
    }

    /// Waits in a fork's child for commands that the child has submitted. SYCL's host tasks, of which dpnp submits one with each
    /// kernel, need threads that the parent has, and a wait for one does not end.
    fn finish_in_child(&self, py: Python<'_>) -> PyResult<()> {
        match self.probe(py, CHILD_TIMEOUT, CHILD_TIMEOUT)? {
            Answer::Waited(result) => result.or_raise(),
            Answer::Idle => Ok(()),
            Answer::TimedOut => {
                STUCK.store(true, Ordering::Relaxed);
                Err(stuck())
            }
        }
    }

    /// Asks in another thread whether the queue is idle, and waits for it if it is not, with a timeout for each.
    ///
    /// # Errors
    /// `OSError` when the thread cannot be started.
    fn probe(&self, py: Python<'_>, lock: Duration, work: Duration) -> PyResult<Answer> {
        let queue = (*self.reference).clone();
        let (sender, receiver) = mpsc::channel();
        let probe = thread::Builder::new().name("zeusm-inherited".to_owned());
        probe.spawn(move || {
            // Sending fails once the receiver has timed out.
            let is_idle = queue.is_idle();
            let _ = sender.send(is_idle.then_some(Answer::Idle));
            if !is_idle {
                let _ = sender.send(Some(Answer::Waited(queue.wait())));
            }
            // The drop would take locks of SYCL.
            mem::forget(queue);
        })?;
        let answer = detach(py, move || match receiver.recv_timeout(lock).ok()? {
            None => receiver.recv_timeout(work).ok()?,
            idle => idle,
        });
        Ok(answer.unwrap_or(Answer::TimedOut))
    }
}

/// The error where SYCL does not complete work in a fork's child.
fn stuck() -> PyErr {
    PyRuntimeError::new_err(
        "SYCL does not complete the work on a queue. This process is the child of a fork, and its parent used SYCL, which does \
         not support forks: use multiprocessing's start method \"spawn\", or fork before the import of dpctl",
    )
}

/// The answer of a [`probe`](SyclQueue::probe).
enum Answer {
    Idle,
    Waited(Result<(), Error>),
    TimedOut,
}
