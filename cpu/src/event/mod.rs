//! Events: level-triggered signals with the time of the operation that set them.

mod entry;
mod pool;
mod timestamps;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;

use crate::engine::Task;
use crate::engine::{Signal, dispatch};
use crate::handle::object;
pub use entry::*;
pub use pool::*;
pub use timestamps::*;

object!(Event, sys::_ze_event_handle_t, Event);

/// One event of a pool.
pub struct Event {
    pool: Arc<EventPool>,
    pool_handle: usize,
    signal: Signal,
    signal_scope: u32,
    wait_scope: u32,
    started: AtomicU64,
    ended: AtomicU64,
}

impl Event {
    /// What waits on the event wait on.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Whether its pool asked for kernel timestamps.
    pub fn is_timed(&self) -> bool {
        self.pool.is_timed()
    }

    /// The operation that signals it has run from `started` to `ended` (ns). Returns the tasks that may start now.
    #[must_use]
    pub fn complete(&self, started: u64, ended: u64) -> Vec<Arc<Task>> {
        self.started.store(started, Ordering::Relaxed);
        self.ended.store(ended, Ordering::Relaxed);
        self.signal.set()
    }

    /// Signals it from the host.
    pub fn signal_from_host(&self) {
        dispatch(self.signal.set());
    }

    /// Start and end of the operation that signalled it, in nanoseconds.
    fn times(&self) -> (u64, u64) {
        (
            self.started.load(Ordering::Relaxed),
            self.ended.load(Ordering::Relaxed),
        )
    }
}
