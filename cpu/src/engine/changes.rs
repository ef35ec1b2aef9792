//! The changes of signals that submitted commands are to make.
//!
//! A command sets a signal, resets one, or does both on its completion. Until then the signals count these changes, which tells
//! how a command that enters an engine now will find them.

use std::sync::Arc;

use super::command::Token;
use super::signal::Signal;
use crate::abi::result::ZeResult;

/// A change of a signal by a command.
#[derive(Clone, Copy)]
pub struct Change {
    /// Whether it sets the signal, or resets it.
    pub sets: bool,
    /// Whether the command is in an engine.
    pub in_engine: bool,
}

/// The pending changes of a signal: their commands have been submitted, and are neither complete nor dropped.
///
/// Those of commands in engines are made in the order in which they were added: an engine is in order, and where commands in
/// different engines change the same signal, a correct program lets one wait for the other, and commands in engines wait for
/// earlier ones only. So while there are any, the one that was added last is pending, and decides how the signal is left. The
/// commands that are in no engine may be complete at any time.
#[derive(Default)]
pub struct Pending {
    /// How many commands in engines change it.
    in_engines: usize,
    /// Whether the last of them sets it.
    last_sets: bool,
    /// How many commands that are in no engine reset it.
    other_resets: usize,
}

impl Pending {
    /// Adds a change.
    pub fn add(&mut self, change: Change) {
        if change.in_engine {
            self.in_engines += 1;
            self.last_sets = change.sets;
        } else {
            self.other_resets += usize::from(!change.sets);
        }
    }

    /// Removes a change, which is being made or never will be.
    pub fn remove(&mut self, change: Change) {
        if change.in_engine {
            self.in_engines -= 1;
        } else {
            self.other_resets -= usize::from(!change.sets);
        }
    }

    /// Whether the signal, which is now `set` or not, is set once all commands in engines are complete, whatever the others do.
    pub fn leave_set(&self, set: bool) -> bool {
        let after_engines = if self.in_engines > 0 {
            self.last_sets
        } else {
            set
        };
        after_engines && self.other_resets == 0
    }
}

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

    fn make(mut self, started: u64, ended: u64, ready: &mut Vec<Token>) {
        if let Some(change) = self.change.take() {
            ready.append(&mut self.signal.make_change(change, started, ended));
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

/// The changes that a submitted command makes.
pub struct Changes {
    reset: Option<Promised>,
    set: Option<Promised>,
    /// Whether the signal that it sets reports the errors of all commands before it, too.
    concludes: bool,
}

impl Changes {
    /// Those of a command that resets and sets these signals, pending from now on.
    pub fn new(reset: Option<Arc<Signal>>, set: Option<Arc<Signal>>, in_engine: bool) -> Self {
        let promised = |signal: Option<Arc<Signal>>, sets| {
            signal.map(|signal| Promised::new(signal, Change { sets, in_engine }))
        };
        Self {
            reset: promised(reset, false),
            set: promised(set, true),
            concludes: false,
        }
    }

    /// Those of a command that concludes, or not: if it sets a signal, that reports the errors of all commands before it, too.
    pub fn concluding(mut self, concludes: bool) -> Self {
        self.concludes = concludes && self.set.is_some();
        self
    }

    /// Whether the command concludes.
    pub fn concludes(&self) -> bool {
        self.concludes
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
    pub fn make(self, started: u64, ended: u64) -> Vec<Token> {
        let mut ready = Vec::new();
        if let Some(reset) = self.reset {
            reset.make(started, ended, &mut ready);
        }
        if let Some(set) = self.set {
            set.make(started, ended, &mut ready);
        }
        ready
    }
}
