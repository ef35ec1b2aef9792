//! The commands in flight of a native queue.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use crate::abi::result::ZeResult;
use crate::engine::order::{NativeEvent, Token};

/// The commands of a native queue that are not complete, in its order.
#[derive(Default)]
pub struct InFlight {
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// The position of the first of them.
    first: u64,
    /// Whether a thread is completing commands.
    is_draining: bool,
    /// The position of the command that a host thread waits for inside the native runtime.
    awaited: Option<u64>,
}

/// A command in flight.
struct Entry {
    state: State,
    /// When it was enqueued.
    started: u64,
}

/// Where a command is.
enum State {
    /// The native runtime executes it.
    Issued(Box<Token>),
    /// It has ended with this outcome, as a marker has from the start.
    Ended(Box<Token>, ZeResult),
    /// A thread completes it.
    Completing,
}

impl InFlight {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The position of the next command.
    pub fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Adds a native command that was enqueued at `started`, or a marker, which has no event.
    pub fn push(&mut self, token: Box<Token>, started: u64) {
        let state = match token.event {
            Some(_) => State::Issued(token),
            None => State::Ended(token, Ok(())),
        };
        self.entries.push_back(Entry { state, started });
    }

    fn index(&self, position: u64) -> Option<usize> {
        let index = usize::try_from(position.checked_sub(self.first)?).ok()?;
        (index < self.entries.len()).then_some(index)
    }

    /// The last command up to `position` that the native runtime executes, with its position.
    pub fn issued_before(&self, position: u64) -> Option<(u64, Arc<dyn NativeEvent>)> {
        let index = self.index(position)?;
        let mut entries = self.entries.range(..=index).enumerate().rev();
        entries.find_map(|(index, entry)| match &entry.state {
            State::Issued(token) => Some((self.first + index as u64, token.event.clone()?)),
            _ => None,
        })
    }

    /// The completion event of the last command that the native runtime executes.
    pub fn last(&self) -> Option<Arc<dyn NativeEvent>> {
        let last = self.end().checked_sub(1)?;
        self.issued_before(last).map(|(_, event)| event)
    }

    /// A host thread waits for the command at a position inside the native runtime; `None` when it has come back.
    pub fn await_inside(&mut self, position: Option<u64>) {
        self.awaited = position;
    }

    /// Notes the outcome of a command that has ended, unless it has one. Returns whether the queue should be drained: not if a
    /// host thread waits inside the native runtime for exactly this command, and none is behind it, as that thread drains then.
    pub fn note(&mut self, position: u64, outcome: ZeResult) -> bool {
        let Some(index) = self.index(position) else {
            return false;
        };
        let entry = &mut self.entries[index];
        entry.state = match mem::replace(&mut entry.state, State::Completing) {
            State::Issued(token) => State::Ended(token, outcome),
            other => other,
        };
        let mut later = self.entries.range(index + 1..);
        self.awaited != Some(position) || later.any(Entry::is_native)
    }

    /// Begins to complete commands; `false` when another thread does so.
    pub fn begin_draining(&mut self) -> bool {
        !mem::replace(&mut self.is_draining, true)
    }

    /// The oldest command, with its outcome and when it was enqueued, if it has ended; otherwise the end of draining.
    pub fn front(&mut self) -> Option<(Box<Token>, ZeResult, u64)> {
        let ended = self.entries.front_mut().and_then(Entry::take_ended);
        self.is_draining = ended.is_some();
        ended
    }

    /// Removes the oldest command, which is complete.
    pub fn pop(&mut self) {
        self.entries.pop_front();
        self.first += 1;
    }
}

impl Entry {
    /// Whether it is a native command, and no marker.
    fn is_native(&self) -> bool {
        match &self.state {
            State::Issued(token) | State::Ended(token, _) => token.event.is_some(),
            State::Completing => false,
        }
    }

    fn take_ended(&mut self) -> Option<(Box<Token>, ZeResult, u64)> {
        match mem::replace(&mut self.state, State::Completing) {
            State::Ended(token, outcome) => Some((token, outcome, self.started)),
            other => {
                self.state = other;
                None
            }
        }
    }
}
