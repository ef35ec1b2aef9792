//! SYCL queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::classes::{ContextRef, DeviceRef, EventRef, QueueRef};
use super::error::Error;
use super::library::Library;
use super::poll::Poll;
use crate::runtime::Runtime;

/// The first version of libsycl whose empty queues have no pending work.
const RELIABLE_EMPTY: u32 = 9;

fn has_reliable_empty(library: &Library) -> bool {
    library.sycl_version() >= RELIABLE_EMPTY
}

/// How long a wait polls whether the queue is empty, which other threads may prevent by their submissions.
const POLL_LIMIT: Duration = Duration::from_secs(1);

/// Whether a wait for a queue has failed.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

impl QueueRef {
    /// Submits a barrier that waits for an event, and for what is in the queue.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn barrier_after(&self, event: &EventRef) -> Result<EventRef, Error> {
        let library = self.library();
        // SAFETY: both references are alive, and the array has one. dpctl catches exceptions, and returns null or a new
        // reference.
        unsafe {
            let events = [event.as_raw()];
            let submit = library.functions.queue_barrier_after;
            let event = submit(self.as_raw(), events.as_ptr(), events.len());
            EventRef::own(library, event, "DPCTLQueue_SubmitBarrierForEvents")
        }
    }

    /// The context of the queue.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn context(&self) -> Result<ContextRef, Error> {
        // SAFETY: the reference is alive; the queue stores its context, so the call does not throw, and returns a new
        // reference.
        unsafe {
            let context = (self.functions().queue_context)(self.as_raw());
            ContextRef::own(self.library(), context, "DPCTLQueue_GetContext")
        }
    }

    /// The device of the queue.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn device(&self) -> Result<DeviceRef, Error> {
        // SAFETY: the reference is alive; the result is null or a new reference.
        unsafe {
            let device = (self.functions().queue_device)(self.as_raw());
            DeviceRef::own(self.library(), device, "DPCTLQueue_GetDevice")
        }
    }

    /// Whether the queue is in-order.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        // SAFETY: the reference is alive; the queue stores the property, so the call does not throw.
        unsafe { (self.functions().queue_is_in_order)(self.as_raw()) }
    }

    /// Whether all work submitted to the queue is complete, as after a wait. Always `false` before libsycl 9, which may not
    /// count work that waits for a host task of another queue.
    ///
    /// Source: the extension `sycl_ext_oneapi_queue_empty`.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let library = self.library();
        if !has_reliable_empty(library) {
            return false;
        }
        // SAFETY: the reference is a `sycl::queue *`, which is the `this` of the method.
        let is_empty = library.call(&library.throwing.queue_is_empty, |is_empty| unsafe {
            is_empty(self.as_raw())
        });
        // A failure is reported by the wait that follows.
        is_empty.unwrap_or(false)
    }

    /// Waits until all work submitted to the queue is complete.
    ///
    /// For an in-order queue, SYCL's own wait is a wait for the last command's event; this uses [`EventRef::wait`] instead.
    ///
    /// # Errors
    /// [`Error::Thrown`] with SYCL's message, for instance when the device is lost.
    pub fn wait(&self) -> Result<(), Error> {
        if self.is_in_order()
            && let Ok(last) = self.barrier()
        {
            last.wait_unless(|| self.check_alive().is_err());
            if last.is_complete() {
                return Ok(());
            }
        }
        // SYCL's first adapter keeps the lock of a queue whose wait has failed: another wait would never end.
        if HAS_FAILED.load(Ordering::Relaxed)
            && let Err(lost) = self.check_alive()
        {
            return Err(Error::Thrown {
                function: "DPCTLQueue_Wait",
                text: lost.to_string(),
            });
        }
        let library = self.library();
        // SAFETY: the reference is alive; dpctl calls the queue's method, and does not catch exceptions.
        let waited = library.call(&library.throwing.queue_wait, |wait| unsafe {
            wait(self.as_raw());
        });
        waited.inspect_err(|_| HAS_FAILED.store(true, Ordering::Relaxed))
    }

    /// As [`wait`](Self::wait), where other threads may submit with a lock that host tasks acquire: the GIL of Python.
    ///
    /// SYCL's own wait for an out-of-order queue holds the lock of SYCL's graph while commands wait for a host task, and a
    /// submission acquires that lock. This polls whether the queue is empty, and waits only after a second.
    ///
    /// # Errors
    /// As there.
    pub fn wait_beside_submissions(&self) -> Result<(), Error> {
        let is_polled = !self.is_in_order() && has_reliable_empty(self.library());
        let poll = Poll::start();
        while is_polled && poll.elapsed() < POLL_LIMIT {
            if self.is_idle() {
                return Ok(());
            }
            poll.pause();
        }
        self.wait()
    }

    /// Waits for an event of the queue as [`EventRef::wait`] does, but only the queue's device counts.
    ///
    /// # Errors
    /// As there.
    pub fn wait_for(&self, event: &EventRef) -> crate::error::Result<()> {
        let mut loss = None;
        event.wait_unless(|| {
            loss = self.check_alive().err();
            loss.is_some()
        });
        loss.filter(|_| !event.is_complete()).map_or(Ok(()), Err)
    }

    /// Checks that the driver does not report the queue's device as lost.
    fn check_alive(&self) -> crate::error::Result<()> {
        let device = self.device().and_then(|device| device.native());
        let (Ok(device), Ok(runtime)) = (device, Runtime::get()) else {
            return Ok(());
        };
        let found = runtime.driver_of(device).and_then(|driver| {
            // SAFETY: the handle comes from this driver.
            unsafe { driver.device(device) }
        });
        found.map_or(Ok(()), |device| device.check_alive())
    }

    /// Submits a barrier: an event that completes after all work submitted to the queue before. For in-order queues: in an
    /// out-of-order one, a barrier also delays what is submitted later, until the host tasks before it are complete.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn barrier(&self) -> Result<EventRef, Error> {
        // SAFETY: the reference is alive; dpctl catches exceptions, and returns null or a new reference.
        unsafe {
            let event = (self.functions().queue_barrier)(self.as_raw());
            EventRef::own(self.library(), event, "DPCTLQueue_SubmitBarrier")
        }
    }
}
