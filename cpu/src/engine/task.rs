//! A submitted operation that could not run in its caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use level_zero_sys as sys;
use parking_lot::Mutex;

use super::operation::{Operation, Pins};
use super::signal::Signal;
use crate::clock;
use crate::event::Event;

/// The first error of a stream's operations since the host last asked; 0 is none.
#[derive(Default)]
pub struct Fault(AtomicU32);

impl Fault {
    /// Notes an error unless there is one already.
    pub fn note(&self, code: sys::ze_result_t) {
        let _ = self
            .0
            .compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Reports the error once.
    pub fn take(&self) -> Result<(), sys::ze_result_t> {
        match self.0.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            code => Err(sys::ze_result_t(code)),
        }
    }
}

/// An operation, what it still waits for, and what its end makes known.
pub struct Task {
    operation: Arc<dyn Operation>,
    parts: usize,
    short: bool,
    /// Signals that have not been given yet, and one more while the task is being submitted.
    blockers: AtomicUsize,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    started: AtomicU64,
    pins: Mutex<Pins>,
    /// The event to signal, and its round.
    event: Option<(Arc<Event>, Arc<Signal>)>,
    done: Arc<Signal>,
    fault: Arc<Fault>,
}

impl Task {
    /// A task that cannot start before [`unblock`](Self::unblock) has been called once by its maker.
    pub fn new(
        operation: Arc<dyn Operation>,
        pins: Pins,
        event: Option<Arc<Event>>,
        done: Arc<Signal>,
        fault: Arc<Fault>,
    ) -> Arc<Self> {
        Arc::new(Self {
            parts: operation.parts().max(1),
            short: operation.is_short(),
            operation,
            blockers: AtomicUsize::new(1),
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            pins: Mutex::new(pins),
            event: event.map(|event| {
                let round = event.begin();
                (event, round)
            }),
            done,
            fault,
        })
    }

    /// One more thing to wait for.
    pub fn block(&self) {
        self.blockers.fetch_add(1, Ordering::Relaxed);
    }

    /// One thing less to wait for; `true` when it was the last and the task may start.
    pub fn unblock(self: &Arc<Self>) -> bool {
        self.blockers.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// How many threads can work on it at once.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Whether it is not worth waking a thread for.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Runs parts until none is left to claim. The thread that ends the last part gets the tasks that may start now.
    pub fn work(&self) -> Vec<Arc<Task>> {
        loop {
            let part = self.claimed.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return Vec::new();
            }
            if part == 0 {
                self.started.store(clock::now(), Ordering::Relaxed);
            }
            if let Err(code) = self.operation.run(part) {
                self.fault.note(code);
            }
            if self.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
                return self.complete();
            }
        }
    }

    /// Makes the end known: first lets go of memory, then signals the event, then the stream.
    fn complete(&self) -> Vec<Arc<Task>> {
        self.pins.lock().clear();
        let mut ready = match &self.event {
            Some((event, round)) => {
                event.complete(round, self.started.load(Ordering::Relaxed), clock::now())
            }
            None => Vec::new(),
        };
        ready.append(&mut self.done.set());
        ready
    }
}
