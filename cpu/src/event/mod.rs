//! Events: signals with the time of the operation that gave them.
//!
//! A regular event is set by the operation that signals it and stays so until it is reset. A counter-based event is
//! never reset: each operation that is to signal it begins a new round, and whoever waits, waits for the round that was
//! the latest at that moment.

mod entry;
mod pool;
mod timestamps;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;
use parking_lot::RwLock;

use crate::engine::{Signal, Task, dispatch};
use crate::handle::object;
pub use entry::*;
pub use pool::*;
pub use timestamps::*;

object!(Event, sys::_ze_event_handle_t, Event);

/// An event.
pub struct Event {
    round: RwLock<Arc<Signal>>,
    traits: Traits,
    started: AtomicU64,
    ended: AtomicU64,
}

/// How an event was asked to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traits {
    /// The handle of its pool, 0 without one.
    pub pool: usize,
    /// Whether it keeps the time of what signals it.
    pub timed: bool,
    /// The flags of a counter-based event.
    pub counter: Option<u32>,
    /// `ze_event_scope_flags_t` of signalling.
    pub signal_scope: u32,
    /// `ze_event_scope_flags_t` of waiting.
    pub wait_scope: u32,
}

impl Event {
    /// A new event: a regular one is not signalled, a counter-based one has nothing to wait for.
    pub fn new(traits: Traits) -> Self {
        let first = if traits.counter.is_some() {
            Signal::already_set()
        } else {
            Signal::default()
        };
        Self {
            round: RwLock::new(Arc::new(first)),
            traits,
            started: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// What to wait on for the latest round.
    pub fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.round.read())
    }

    /// Whether it keeps the time of what signals it.
    pub fn is_timed(&self) -> bool {
        self.traits.timed
    }

    /// Whether it is counter-based.
    pub fn is_counter(&self) -> bool {
        self.traits.counter.is_some()
    }

    /// What an operation that has just been submitted is to set at its end.
    pub fn begin(&self) -> Arc<Signal> {
        if self.is_counter() {
            *self.round.write() = Arc::default();
        }
        self.signal()
    }

    /// The operation that signals it has run from `started` to `ended` (ns) and sets `round`, what
    /// [`begin`](Self::begin) gave it. Returns the tasks that may start now.
    #[must_use]
    pub fn complete(&self, round: &Signal, started: u64, ended: u64) -> Vec<Arc<Task>> {
        self.started.store(started, Ordering::Relaxed);
        self.ended.store(ended, Ordering::Relaxed);
        round.set()
    }

    /// As [`begin`](Self::begin) and [`complete`](Self::complete) for an operation that is over already.
    pub fn complete_at_once(&self, started: u64, ended: u64) {
        let mut round = self.signal();
        if self.is_counter() && !round.is_set() {
            round = self.begin();
        }
        dispatch(self.complete(&round, started, ended));
    }

    /// Start and end of the operation that signalled it, in nanoseconds.
    fn times(&self) -> (u64, u64) {
        (
            self.started.load(Ordering::Relaxed),
            self.ended.load(Ordering::Relaxed),
        )
    }
}
