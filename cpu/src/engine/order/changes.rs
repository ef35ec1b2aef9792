//! The changes of signals that submitted commands are to make.
//!
//! A command sets a signal, resets one, or does both on its completion. Until then the signals count these changes, which tells
//! how a command that enters an engine now will find them.

use std::sync::Arc;

use super::fault::Faults;
use super::pending::Change;
use super::ready::ReadyList;
use super::signal::Signal;
use crate::abi::result::ZeResult;

/// A change that is pending until it is made or this is dropped.
struct Promised {
    signal: Arc<Signal>,
    change: Option<Change>,
}

impl Promised {
    fn new(signal: Arc<Signal>, change: Change) -> Self {
        signal.promise_change(change);
        Self {
            signal,
            change: Some(change),
        }
    }

    fn make(&mut self, started: u64, ended: u64, ready: &mut ReadyList) {
        if let Some(change) = self.change.take() {
            ready.extend(self.signal.make_change(change, started, ended));
        }
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        if let Some(change) = self.change {
            self.signal.withdraw_change(change);
        }
    }
}

/// The signal that a command sets, and whether that may report the errors of other commands.
pub struct Report {
    /// The signal.
    pub signal: Option<Arc<Signal>>,
    /// Whether the program ordered the command behind all commands before it. The command's order in an engine is another one.
    pub of_all: bool,
}

/// The changes that a submitted command makes.
pub struct Changes {
    reset: Option<Promised>,
    set: Option<Promised>,
    /// Whether the signal that it sets reports the errors of all commands before it, too.
    concludes: bool,
}

impl Changes {
    /// Those of a command that resets and sets these signals, pending from now on. If it `concludes`, the signal that it sets
    /// reports the errors of all commands before it, too.
    pub fn new(
        reset: Option<Arc<Signal>>,
        set: Option<Arc<Signal>>,
        in_engine: bool,
        concludes: bool,
    ) -> Self {
        let promised = |signal: Option<Arc<Signal>>, sets| {
            signal.map(|signal| Promised::new(signal, Change { sets, in_engine }))
        };
        Self {
            concludes: concludes && set.is_some(),
            reset: promised(reset, false),
            set: promised(set, true),
        }
    }

    /// Reports the errors of the commands before it, if it concludes.
    pub fn conclude(&self, faults: &Faults) {
        if self.concludes {
            self.note(faults.conclude());
        }
    }

    /// Notes an outcome that waits for the signal report.
    pub fn note(&self, outcome: ZeResult) {
        if let (Err(code), Some(signal)) = (outcome, self.signal()) {
            signal.fault().note(code);
        }
    }

    /// The signal that the command sets.
    pub fn signal(&self) -> Option<&Signal> {
        self.set.as_ref().map(|set| &*set.signal)
    }

    /// Whether its start and end times are needed.
    pub fn is_timed(&self) -> bool {
        self.signal().is_some_and(Signal::is_timed)
    }

    /// Makes the changes of a command that ran at these times, and returns the commands that have been waiting for them.
    #[must_use]
    pub fn make(&mut self, started: u64, ended: u64) -> ReadyList {
        let mut ready = ReadyList::new();
        for promised in [&mut self.reset, &mut self.set].into_iter().flatten() {
            promised.make(started, ended, &mut ready);
        }
        ready
    }
}
