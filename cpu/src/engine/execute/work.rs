//! Long commands, whose parts several threads run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zeusm_process::Mutex;

use super::workers::{Job, Workers};
use crate::engine::order::{Advance as _, Executor, Help, Operation, Token, dispatch, run};
use crate::system::clock::{self, Deadline};
use crate::system::processor;

/// How long a short part takes at most, unless the machine is very busy: a thread that waits with a timeout begins none later.
const SHORT_PART: Duration = Duration::from_millis(5);

/// A long command whose parts are being run.
pub struct Work {
    workers: &'static Workers,
    operation: Arc<dyn Operation>,
    parts: usize,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    started: AtomicU64,
    /// Taken by the thread that finishes the last part.
    token: Mutex<Option<Box<Token>>>,
}

impl Work {
    /// Publishes a long command, and has the workers run its parts.
    pub fn begin(token: Box<Token>, workers: &'static Workers) {
        let priority = token.priority();
        let work = Self::publish(token, workers);
        let helpers = work.parts.min(processor::count());
        let job = || {
            let work = Arc::clone(&work);
            Box::new(move || {
                work.run(None);
            }) as Job
        };
        workers.enqueue(priority, (0..helpers).map(|_| job()));
    }

    fn publish(token: Box<Token>, workers: &'static Workers) -> Arc<Self> {
        let operation = Arc::clone(&token.operation);
        let work = Arc::new(Self {
            parts: operation.parts().max(1),
            operation,
            workers,
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            token: Mutex::default(),
        });
        let executor = Executor::Shared(Arc::clone(&work) as Arc<dyn Help>);
        // Other threads may run all parts as soon as the executor is published; the last one then waits for the token's
        // lock.
        let mut place = work.token.lock();
        let ready = place.insert(token).executing(&executor);
        drop(place);
        // No command can be chained to it, so none is ready before its completion.
        debug_assert!(ready.is_empty());
        work
    }

    /// Runs parts until none is left to claim; with an `end`, short parts until then. Returns whether it ran one.
    fn run(&self, end: Option<Instant>) -> bool {
        let mut any = false;
        loop {
            if let Some(end) = end
                && !(self.operation.has_short_parts() && Instant::now() < end)
            {
                return any;
            }
            let part = self.claimed.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return any;
            }
            any = true;
            if part == 0 {
                self.started.store(clock::now(), Ordering::Relaxed);
            }
            let outcome = run(&*self.operation, part);
            if outcome.is_err()
                && let Some(token) = &*self.token.lock()
            {
                token.note(outcome);
            }
            if self.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
                let token = self.token.lock().take();
                if let Some(token) = token {
                    let started = self.started.load(Ordering::Relaxed);
                    let ready = token.complete(started, clock::now());
                    if end.is_some() {
                        // To run them takes any time, as many others may follow them.
                        ready.into_iter().for_each(|it| self.workers.advance(it));
                    } else {
                        dispatch(ready);
                    }
                }
                return true;
            }
        }
    }
}

impl Help for Work {
    fn help(&self, deadline: Deadline) -> bool {
        self.run(deadline.less(SHORT_PART))
    }
}
