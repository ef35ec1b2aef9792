//! Events, and the signals that they have one after another.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;
use level_zero_sys::extensions;
use zeusm_process::{ForkSafe, Mutex};

use super::rounds::{Place, Rounds};
use crate::abi::result::ZeResult;
use crate::engine::{Signal, dispatch};
use crate::handle::object;
use crate::memory::ShareError;
use crate::system::clock;

object!(Event, sys::_ze_event_handle_t, Event);

/// An event.
pub struct Event {
    /// The latest signal.
    current: ForkSafe<Mutex<Latest>>,
    pub(super) attributes: Attributes,
    /// The slots of a counter-based event that processes may share.
    rounds: Option<Rounds>,
    /// The handle of the graph that is recording the command which signals it last, 0 without one.
    capture: AtomicUsize,
    /// Whether it is that of another process.
    pub is_opened: bool,
}

/// The latest signal of an event.
#[derive(Clone)]
struct Latest {
    signal: Arc<Signal>,
    /// The slot that has its state, if processes may share it, or the reason why they cannot.
    place: Option<Result<Place, ShareError>>,
}

impl Latest {
    /// A signal of this process alone.
    fn own(signal: Arc<Signal>) -> Self {
        Self {
            signal,
            place: None,
        }
    }
}

impl Default for Latest {
    /// Where the parent of a fork was about to replace the signal, the child gets one that is set.
    fn default() -> Self {
        Self::own(Arc::new(Signal::new(true, false)))
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

impl Attributes {
    /// The flags of a counter-based event that processes may share.
    fn shared_counter(&self) -> Option<u32> {
        let shared = extensions::ZE_EVENT_COUNTER_BASED_FLAG_IPC;
        // The events of a pool have flags of another type.
        let own = self.counter.filter(|_| self.pool == 0);
        own.filter(|flags| flags & shared != 0)
    }
}

/// The next signal of a counter-based event that processes share; of this process alone where the system refuses.
fn next_round(rounds: &Rounds, flags: u32, timed: bool) -> Latest {
    let place = rounds.next(flags);
    let signal = match &place {
        Ok(place) => place.signal(timed),
        Err(_) => Arc::new(Signal::new(false, timed)),
    };
    Latest {
        signal,
        place: Some(place),
    }
}

impl Event {
    /// A new event: a regular one is not signalled, a counter-based one is, as there is nothing to wait for.
    pub fn new(attributes: Attributes) -> Self {
        let is_set = attributes.counter.is_some();
        let Some(flags) = attributes.shared_counter() else {
            let first = Signal::new(is_set, attributes.timed);
            return Self::with_signal(attributes, Arc::new(first));
        };
        let rounds = Rounds::default();
        let latest = next_round(&rounds, flags, attributes.timed);
        dispatch(latest.signal.set(0, 0));
        Self::with_latest(attributes, latest, Some(rounds))
    }

    /// An event with this signal.
    pub fn with_signal(attributes: Attributes, signal: Arc<Signal>) -> Self {
        Self::with_latest(attributes, Latest::own(signal), None)
    }

    /// The counter-based event of another process whose latest signal is at `place`.
    pub fn opened(attributes: Attributes, place: Place) -> Self {
        let latest = Latest {
            signal: place.signal(attributes.timed),
            place: Some(Ok(place)),
        };
        Self {
            is_opened: true,
            ..Self::with_latest(attributes, latest, Some(Rounds::default()))
        }
    }

    fn with_latest(attributes: Attributes, latest: Latest, rounds: Option<Rounds>) -> Self {
        Self {
            current: ForkSafe::new(Mutex::new(latest)),
            attributes,
            rounds,
            capture: AtomicUsize::new(0),
            is_opened: false,
        }
    }

    /// The latest signal.
    pub fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.current.get().lock().signal)
    }

    /// The slot of the latest signal, whose file stays open as long as the event lives.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for an event that was not created to be shared, else the system's, which is
    /// described.
    pub fn exported(&self) -> ZeResult<Place> {
        let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
        let rounds = self.rounds.as_ref().ok_or(invalid)?;
        let place = self.current.get().lock().place.clone().ok_or(invalid)?;
        let place = place.map_err(|error| error.report())?;
        rounds.keep(&place);
        Ok(place)
    }

    /// Whether it keeps the times of the command that signals it.
    pub fn is_timed(&self) -> bool {
        self.attributes.timed
    }

    /// Whether it is counter-based.
    pub fn is_counter(&self) -> bool {
        self.attributes.counter.is_some()
    }

    /// Whether only the commands of a graph may use it: a counter-based event without the flag that says otherwise.
    pub fn is_internal(&self) -> bool {
        // The events of a pool have flags of another type.
        let external = extensions::ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL;
        let is_external = |flags| self.attributes.pool == 0 && flags & external != 0;
        self.attributes
            .counter
            .is_some_and(|flags| !is_external(flags))
    }

    /// Whether it is a counter-based event that processes may share.
    pub fn is_shared_counter(&self) -> bool {
        self.rounds.is_some()
    }

    /// An event of its kind for one instance of a graph.
    pub fn of_instance(&self) -> Self {
        Self::new(Attributes {
            pool: 0,
            counter: self.attributes.counter.map(|_| 0),
            ..self.attributes
        })
    }

    /// The handle of the graph that is recording the command which signals it last, 0 without one.
    pub fn captured_by(&self) -> usize {
        self.capture.load(Ordering::Relaxed)
    }

    /// A graph records a command that signals it.
    pub fn capture(&self, graph: usize) {
        self.capture.store(graph, Ordering::Relaxed);
    }

    /// What that graph has recorded does not count any more.
    pub fn release(&self, graph: usize) {
        let (relaxed, none) = (Ordering::Relaxed, 0);
        // Another graph may have it now.
        let _ = self.capture.compare_exchange(graph, none, relaxed, relaxed);
    }

    /// The signal that a command being submitted must set on completion.
    pub fn signal_for_submission(&self) -> Arc<Signal> {
        if self.is_counter() {
            let latest = match (&self.rounds, self.attributes.shared_counter()) {
                (Some(rounds), Some(flags)) => next_round(rounds, flags, self.is_timed()),
                _ => Latest::own(Arc::new(Signal::new(false, self.is_timed()))),
            };
            let current = Arc::clone(&latest.signal);
            let before = mem::replace(&mut *self.current.get().lock(), latest);
            // It may own commands, which are not dropped under the lock.
            drop(before);
            current
        } else {
            self.signal()
        }
    }

    /// Signals it on the host.
    pub fn set(&self) {
        let now = clock::now();
        dispatch(self.signal().set(now, now));
    }
}
