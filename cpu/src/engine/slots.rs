//! The commands of a stream that are not complete, and which of them may be executed.

use std::collections::VecDeque;
use std::mem;
use std::ptr;
use std::sync::Arc;

use super::command::{Command, Executor, Token};
use super::native::NativeQueue;
use super::operation::Kind;
use super::order::Order;
use super::stream::Shared;

/// How many unfinished commands a step examines; later ones wait as if behind a barrier, which is always correct. This
/// bounds the cost of a step and the number of native commands that a stream has in flight.
pub(super) const WINDOW: usize = if cfg!(test) { 8 } else { 64 };

/// All commands from the oldest unfinished one on.
#[derive(Default)]
pub struct Slots {
    commands: VecDeque<Slot>,
    /// The number of the first of them.
    first: u64,
    /// How many of them are held.
    held: usize,
}

/// A command in a stream.
struct Slot {
    order: Order,
    stage: Stage,
}

impl Slot {
    /// Whether it is a native command in flight.
    fn is_native(&self) -> bool {
        matches!(self.stage, Stage::Released(Some(Executor::Native(_))))
    }
}

/// Where a command is.
pub enum Stage {
    /// Commands that it follows are not complete.
    Held(Box<Command>),
    /// There is a token of it, and an executor once it is being executed.
    Released(Option<Executor>),
    /// It is complete.
    Done,
}

/// The combined progress of some commands.
#[derive(Clone, Copy)]
enum Progress {
    /// All are complete.
    Done,
    /// Those that are not complete are native commands in flight in one queue.
    Native(&'static NativeQueue),
    /// Something else is unfinished.
    Blocked,
}

impl Progress {
    fn of(stage: &Stage) -> Self {
        match stage {
            Stage::Done => Self::Done,
            Stage::Released(Some(Executor::Native(native))) => Self::Native(native.queue),
            Stage::Held(_) | Stage::Released(_) => Self::Blocked,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, other) => other,
            (this, Self::Done) => this,
            (Self::Native(queue), Self::Native(other)) if ptr::eq(queue, other) => self,
            _ => Self::Blocked,
        }
    }

    /// Whether a command that follows them may be released, and the queue that it has to be enqueued to.
    fn admits(self, kind: Kind) -> Option<Option<&'static NativeQueue>> {
        match self {
            Self::Done => Some(None),
            Self::Native(queue) if kind.is_chainable() => Some(Some(queue)),
            Self::Native(_) | Self::Blocked => None,
        }
    }
}

impl Slots {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The number of the first one.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next command.
    pub fn end(&self) -> u64 {
        self.first + self.commands.len() as u64
    }

    /// The slot of a command that is not complete.
    fn slot(&mut self, sequence: u64) -> Option<&mut Slot> {
        let index = sequence.checked_sub(self.first)?;
        self.commands.get_mut(usize::try_from(index).ok()?)
    }

    /// Appends a command.
    pub fn push(&mut self, order: Order, stage: Stage) {
        self.held += usize::from(matches!(stage, Stage::Held(_)));
        self.commands.push_back(Slot { order, stage });
    }

    /// Notes the executor of a command.
    pub fn executing(&mut self, sequence: u64, executor: Executor) {
        if let Some(slot) = self.slot(sequence) {
            slot.stage = Stage::Released(Some(executor));
        }
    }

    /// Notes that a command is complete. Returns what it was, for the caller to drop without a lock.
    #[must_use]
    pub fn complete(&mut self, sequence: u64) -> Option<Stage> {
        let slot = self.slot(sequence);
        let stage = slot.map(|slot| mem::replace(&mut slot.stage, Stage::Done));
        while let Some(Stage::Done) = self.commands.front().map(|slot| &slot.stage) {
            self.commands.pop_front();
            self.first += 1;
        }
        stage
    }

    /// The executor of the last command before number `end` that is being executed.
    pub fn executor_before(&self, end: u64) -> Option<Executor> {
        let count = end.saturating_sub(self.first);
        let count = usize::try_from(count).map_or(WINDOW, |all| all.min(WINDOW));
        let mut slots = self.commands.iter().take(count).rev();
        slots.find_map(|slot| match &slot.stage {
            Stage::Released(Some(executor)) => Some(executor.clone()),
            _ => None,
        })
    }

    /// If the last command is held back by the native commands before it, has threads that wait for its signal help with those.
    /// The thread that completes them goes on with what follows.
    pub fn expect_before_last(&self, stream: &Arc<Shared>) {
        let mut slots = self.commands.iter().rev();
        if let Some(last) = slots.next()
            && last.order.follows_all()
            && let Stage::Held(command) = &last.stage
            && let Some(signal) = command.changes.signal()
            && slots.take(WINDOW).any(Slot::is_native)
        {
            let number = self.end() - 1;
            signal.expect(Executor::Behind(Arc::downgrade(stream), number));
        }
    }

    /// Releases the commands that may be executed now.
    pub fn release(&mut self, stream: &Arc<Shared>, ready: &mut Vec<Token>) {
        let (mut all, mut barriers) = (Progress::Done, Progress::Done);
        for (sequence, slot) in (self.first..).zip(&mut self.commands).take(WINDOW) {
            if self.held == 0 || matches!(barriers, Progress::Blocked) {
                return;
            }
            let before = if slot.order.follows_all() {
                all
            } else {
                barriers
            };
            if let Stage::Held(command) = &slot.stage
                && let Some(queue) = before.admits(command.kind)
                && let Stage::Held(command) = mem::replace(&mut slot.stage, Stage::Released(None))
            {
                self.held -= 1;
                ready.push(Token::new(Arc::clone(stream), sequence, command, queue));
            }
            let progress = Progress::of(&slot.stage);
            all = all.and(progress);
            if slot.order.holds_later() {
                barriers = barriers.and(progress);
            }
        }
    }
}
