//! Events of barriers, in the place of SYCL events that belong to no queue.
//!
//! SYCL's second Level Zero adapter resets the native event of an event without a queue as soon as the last reference to it is
//! dropped. A command that still waits for it never starts then. The native events of a queue's commands are not reset.

use std::collections::VecDeque;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use once_cell::race::OnceBox;
use pyo3::prelude::*;

use crate::interpreter::detach;
use zeusm::sycl::{EventRef, QueueRef};
use zeusm_process::Mutex;

/// The barriers of a context and device.
pub(super) struct Barriers {
    /// Their queue, made on first use.
    queue: OnceBox<QueueRef>,
    in_flight: Mutex<VecDeque<InFlight>>,
}

/// A barrier, and the event that it waits for.
struct InFlight {
    barrier: EventRef,
    event: EventRef,
}

/// How long a drop waits for barriers, whose events are complete.
const LAST: Duration = Duration::from_millis(100);

impl Barriers {
    pub(super) fn new() -> Self {
        Self {
            queue: OnceBox::new(),
            in_flight: Mutex::new(VecDeque::new()),
        }
    }

    /// An event that is complete when `event` is, and may be dropped while commands wait for it; `None` if SYCL refuses it. The
    /// first call takes the queue for it from `queue`.
    ///
    /// The submission releases the GIL: it takes a lock of SYCL's, which a thread may hold that waits for a host task, and that
    /// may need the GIL.
    pub(super) fn after(
        &self,
        py: Python<'_>,
        event: EventRef,
        queue: impl FnOnce() -> PyResult<Option<QueueRef>>,
    ) -> PyResult<Option<EventRef>> {
        let queue = match self.queue.get() {
            Some(queue) => queue,
            None => {
                let Some(made) = queue()? else {
                    return Ok(None);
                };
                self.queue.get_or_init(|| Box::new(made))
            }
        };
        Ok(detach(py, || {
            let barrier = queue.barrier_after(&event).ok()?;
            self.hold(barrier.clone(), event);
            Some(barrier)
        }))
    }

    /// Holds an event until the barrier is complete, and drops those whose barriers are.
    fn hold(&self, barrier: EventRef, event: EventRef) {
        let mut complete = Vec::new();
        let mut in_flight = self.in_flight.lock();
        while let Some(first) = in_flight.pop_front_if(|first| first.barrier.is_complete()) {
            complete.push(first);
        }
        in_flight.push_back(InFlight { barrier, event });
    }
}

impl Drop for Barriers {
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST;
        for entry in self.in_flight.get_mut().drain(..) {
            while !entry.barrier.is_complete() && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(100));
            }
            if !entry.barrier.is_complete() {
                // Its device is lost, or later work holds it up.
                mem::forget(entry.event);
            }
        }
    }
}
