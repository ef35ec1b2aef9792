//! Events: signals with the time of the operation that gave them.
//!
//! A regular event is set by the operation that signals it and stays so until it is reset. A counter-based event is
//! never reset: each operation that is to signal it begins a new round, and whoever waits, waits for the round that was
//! the latest at that moment.

mod entry;
mod pool;
mod timestamps;

use std::sync::Arc;

use level_zero_sys as sys;

use crate::engine::{Signal, dispatch};
use crate::handle::object;
use crate::process::renew::{Renew, Renewed};
use crate::process::sync::RwLock;
use crate::system::clock;
pub use entry::*;
pub use pool::*;
pub use timestamps::*;

object!(Event, sys::_ze_event_handle_t, Event);

/// An event.
pub struct Event {
    round: Renewed<Round>,
    traits: Traits,
}

/// The latest round of an event.
struct Round(RwLock<Arc<Signal>>);

impl Renew for Round {
    /// Where the parent was about to begin another, that one is over for the child.
    fn renew(&self) -> Self {
        let latest = self.0.try_read().map(|latest| Arc::clone(&latest));
        Self(RwLock::new(
            latest.unwrap_or_else(|| Arc::new(Signal::new(true, false))),
        ))
    }
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
        let first = Signal::new(traits.counter.is_some(), traits.timed);
        Self {
            round: Renewed::new(Round(RwLock::new(Arc::new(first)))),
            traits,
        }
    }

    /// What to wait on for the latest round.
    pub fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.round.get().0.read())
    }

    /// Whether it keeps the time of what signals it.
    pub fn is_timed(&self) -> bool {
        self.traits.timed
    }

    /// Whether it is counter-based.
    pub fn is_counter(&self) -> bool {
        self.traits.counter.is_some()
    }

    /// What an operation that is being submitted is to set at its end, which it has to.
    pub fn begin(&self) -> Arc<Signal> {
        let round = if self.is_counter() {
            let round = Arc::new(Signal::new(false, self.is_timed()));
            *self.round.get().0.write() = Arc::clone(&round);
            round
        } else {
            self.signal()
        };
        round.promise();
        round
    }

    /// Signals it on the host.
    pub fn set(&self) {
        let now = clock::now();
        dispatch(self.signal().set(now, now));
    }
}
