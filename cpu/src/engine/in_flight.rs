//! The commands in flight of a native queue.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use super::command::Token;
use super::native::NativeEvent;
use crate::abi::result::ZeResult;

/// The commands of a native queue that are not complete, in its order. Commands are either *queued*, which the native runtime
/// does not know yet, or *issued* to it; of the native commands in flight, all are queued or all are issued, except while
/// `is_flushing`.
#[derive(Default)]
pub struct InFlight {
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// The position of the first of them.
    first: u64,
    /// How many entries are issued.
    issued: usize,
    /// How many entries are queued.
    queued: usize,
    /// The time in nanoseconds that the brief ones of them are expected to take.
    queued_time: u64,
    /// Whether a thread is completing commands.
    pub is_draining: bool,
    /// Whether that thread also executes queued commands.
    pub is_executing: bool,
    /// Whether that thread has to issue the queued commands at its end.
    pub must_flush: bool,
    /// Whether a thread is issuing the queued commands.
    pub is_flushing: bool,
    /// The position of the command that a host thread waits for inside the native runtime.
    pub awaited: Option<u64>,
}

/// A command in flight.
struct Entry {
    /// `None` while the command is being completed.
    token: Option<Token>,
    stage: Stage,
    started: u64,
    /// The error that ended its issue, when a part of it was issued.
    fault: ZeResult,
    /// The outcome, once the command has ended; a marker has one from the start.
    outcome: Option<ZeResult>,
}

/// Where a command is.
pub enum Stage {
    /// It needs no execution.
    Marker,
    /// In the queue only. If it is brief, with the time in nanoseconds that a waiting thread is expected to execute it for.
    Queued(Option<u64>),
    /// In the native runtime.
    Issued(Arc<dyn NativeEvent>),
}

/// How far the commands up to a position are.
pub enum Progress {
    /// All have ended.
    Ended,
    /// The native runtime executes the last of them that have not.
    Issued(Arc<dyn NativeEvent>, u64),
    /// Some are queued.
    Queued,
    /// Some are being issued by another thread.
    Flushing,
}

/// The oldest command, for the thread that completes it.
pub struct Front {
    /// `None` when there is nothing to complete.
    pub token: Option<Token>,
    /// The completion event, if it was issued.
    pub event: Option<Arc<dyn NativeEvent>>,
    /// When it was issued.
    pub started: u64,
    /// The error that ended its issue, when a part of it was issued.
    pub fault: ZeResult,
    /// The outcome; `None` if the thread is to execute it.
    pub outcome: Option<ZeResult>,
}

impl InFlight {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether some commands are queued.
    pub fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// The time in nanoseconds that the queued brief commands are expected to take.
    pub fn queued_time(&self) -> u64 {
        self.queued_time
    }

    /// Whether some commands are issued.
    pub fn has_issued(&self) -> bool {
        self.issued > 0
    }

    /// The position of the oldest command.
    #[cfg(test)]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The position of the next command.
    pub fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Adds a command that began at `started`.
    pub fn push(&mut self, token: Token, stage: Stage, started: u64) {
        self.add(&stage);
        let outcome = matches!(stage, Stage::Marker).then_some(Ok(()));
        self.entries.push_back(Entry {
            token: Some(token),
            stage,
            started,
            fault: Ok(()),
            outcome,
        });
    }

    /// Counts a command as added to a stage.
    fn add(&mut self, stage: &Stage) {
        match stage {
            Stage::Marker => {}
            Stage::Queued(time) => {
                self.queued += 1;
                self.queued_time += time.unwrap_or(0);
            }
            Stage::Issued(_) => self.issued += 1,
        }
    }

    /// Undoes [`add`](Self::add).
    fn remove(&mut self, stage: &Stage) {
        match stage {
            Stage::Marker => {}
            Stage::Queued(time) => {
                self.queued -= 1;
                self.queued_time -= time.unwrap_or(0);
            }
            Stage::Issued(_) => self.issued -= 1,
        }
    }

    fn index(&self, position: u64) -> Option<usize> {
        let index = usize::try_from(position.checked_sub(self.first)?).ok()?;
        (index < self.entries.len()).then_some(index)
    }

    /// How far the commands up to `position` are.
    pub fn progress(&self, position: u64) -> Progress {
        let Some(index) = self.index(position) else {
            return Progress::Ended;
        };
        for (before, entry) in self.entries.range(..=index).enumerate().rev() {
            match &entry.stage {
                Stage::Queued(_) if self.is_flushing => return Progress::Flushing,
                Stage::Queued(_) => return Progress::Queued,
                Stage::Issued(event) => {
                    return Progress::Issued(Arc::clone(event), self.first + before as u64);
                }
                Stage::Marker => {}
            }
        }
        Progress::Ended
    }

    /// The completion event of the last issued command.
    pub fn last(&self) -> Option<Arc<dyn NativeEvent>> {
        self.entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.stage {
                Stage::Issued(event) => Some(Arc::clone(event)),
                _ => None,
            })
    }

    /// Calls `look` for each queued command, the oldest first.
    pub fn queued<T>(&self, look: impl Fn(u64, &Token) -> T) -> Vec<T> {
        let entries = (self.first..).zip(&self.entries);
        let queued = entries.filter(|(_, entry)| matches!(entry.stage, Stage::Queued(_)));
        queued
            .filter_map(|(position, entry)| Some(look(position, entry.token.as_ref()?)))
            .collect()
    }

    /// The position of the first queued command.
    pub fn first_queued(&self) -> Option<u64> {
        let is_queued = |entry: &Entry| matches!(entry.stage, Stage::Queued(_));
        let index = self.entries.iter().position(is_queued)?;
        Some(self.first + index as u64)
    }

    /// Notes that a queued command was issued, up to a `fault`. It is a marker from now on if there is nothing to execute.
    pub fn issue(
        &mut self,
        position: u64,
        event: Option<Arc<dyn NativeEvent>>,
        started: u64,
        fault: ZeResult,
    ) {
        let Some(index) = self.index(position) else {
            return;
        };
        let stage = event.map_or(Stage::Marker, Stage::Issued);
        self.add(&stage);
        let entry = &mut self.entries[index];
        if matches!(stage, Stage::Marker) {
            entry.outcome = Some(Ok(()));
        }
        (entry.started, entry.fault) = (started, fault);
        let before = mem::replace(&mut entry.stage, stage);
        self.remove(&before);
    }

    /// Notes the outcome of a command that has ended, unless it has one.
    pub fn note(&mut self, position: u64, outcome: ZeResult) {
        if let Some(index) = self.index(position) {
            self.entries[index].outcome.get_or_insert(outcome);
        }
    }

    /// Whether the command at `position` is the last one that was issued.
    pub fn is_last_issued(&self, position: u64) -> bool {
        let is_issued = |entry: &Entry| matches!(entry.stage, Stage::Issued(_));
        let last = self.entries.iter().rposition(is_issued);
        last.is_some_and(|index| self.first + index as u64 == position)
    }

    /// The oldest command, if it has ended, or is queued and brief and its position is at most `until`.
    pub fn front(&mut self, until: Option<u64>) -> Option<Front> {
        let may_execute = until.is_some_and(|until| self.first <= until);
        let entry = self.entries.front_mut()?;
        let is_brief = matches!(entry.stage, Stage::Queued(Some(_)));
        if entry.outcome.is_none() && !(may_execute && is_brief) {
            return None;
        }
        Some(Front {
            token: entry.token.take(),
            event: match &entry.stage {
                Stage::Issued(event) => Some(Arc::clone(event)),
                _ => None,
            },
            started: entry.started,
            fault: entry.fault,
            outcome: entry.outcome,
        })
    }

    /// Removes the oldest command, which is complete. Returns its completion event.
    pub fn pop(&mut self) -> Option<Arc<dyn NativeEvent>> {
        let entry = self.entries.pop_front()?;
        self.first += 1;
        self.remove(&entry.stage);
        match entry.stage {
            Stage::Issued(event) => Some(event),
            _ => None,
        }
    }
}
