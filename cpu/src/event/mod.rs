//! Events: signals with the times of the commands that set them.
//!
//! A regular event is set by the command that signals it, until it is reset. A counter-based event is never reset: each
//! command that signals it gets a new signal, and a wait refers to the signal that is the latest at that time.
//!
//! Processes may share the regular events of a pool (`ipc`). The state of such an event is in a file (`board`).

mod board;
mod entry;
pub mod ipc;
mod pool;
mod timestamps;

use std::sync::Arc;

use level_zero_sys as sys;

use crate::engine::{Signal, dispatch};
use crate::handle::object;
use crate::process::fork_safe::{ForkSafe, Reinit};
use crate::process::sync::RwLock;
use crate::system::clock;
pub use entry::*;
pub use pool::*;
pub use timestamps::*;

object!(Event, sys::_ze_event_handle_t, Event);

/// An event.
pub struct Event {
    current: ForkSafe<Current>,
    attributes: Attributes,
}

/// The latest signal of an event.
struct Current(RwLock<Arc<Signal>>);

impl Reinit for Current {
    /// Where the parent was about to replace the signal, the child gets one that is set.
    fn reinit(&self) -> Self {
        let latest = self.0.try_read().map(|latest| Arc::clone(&latest));
        Self(RwLock::new(
            latest.unwrap_or_else(|| Arc::new(Signal::new(true, false))),
        ))
    }
}

/// The attributes of an event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    /// The handle of its pool, 0 without one.
    pub pool: usize,
    /// Whether it keeps the times of the command that signals it.
    pub timed: bool,
    /// The flags of a counter-based event.
    pub counter: Option<u32>,
    /// `ze_event_scope_flags_t` of signalling.
    pub signal_scope: u32,
    /// `ze_event_scope_flags_t` of waiting.
    pub wait_scope: u32,
}

impl Event {
    /// A new event: a regular one is not signalled, a counter-based one is, as there is nothing to wait for.
    pub fn new(attributes: Attributes) -> Self {
        let first = Signal::new(attributes.counter.is_some(), attributes.timed);
        Self::with_signal(attributes, Arc::new(first))
    }

    /// An event with this signal.
    pub fn with_signal(attributes: Attributes, signal: Arc<Signal>) -> Self {
        Self {
            current: ForkSafe::new(Current(RwLock::new(signal))),
            attributes,
        }
    }

    /// The latest signal.
    pub fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.current.get().0.read())
    }

    /// Whether it keeps the times of the command that signals it.
    pub fn is_timed(&self) -> bool {
        self.attributes.timed
    }

    /// Whether it is counter-based.
    pub fn is_counter(&self) -> bool {
        self.attributes.counter.is_some()
    }

    /// The signal that a command being submitted must set on completion.
    pub fn signal_for_submission(&self) -> Arc<Signal> {
        let current = if self.is_counter() {
            let current = Arc::new(Signal::new(false, self.is_timed()));
            *self.current.get().0.write() = Arc::clone(&current);
            current
        } else {
            self.signal()
        };
        current.promise();
        current
    }

    /// Signals it on the host.
    pub fn set(&self) {
        let now = clock::now();
        dispatch(self.signal().set(now, now));
    }
}
