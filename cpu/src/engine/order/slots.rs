//! The commands of a stream that are not complete, and which of them may be executed.

use std::collections::VecDeque;
use std::mem;

use super::help::{Executor, QueueNumber};
use super::operation::{Kind, Order};

/// How many unfinished commands a step examines; later ones wait as if behind a barrier, which is always correct. This
/// bounds the cost of a step and the number of native commands that a stream has in flight.
pub const WINDOW: usize = if cfg!(test) { 8 } else { 64 };

/// All commands from the oldest unfinished one on, which are `T`s.
pub struct Slots<T> {
    commands: VecDeque<Slot<T>>,
    /// The number of the first of them.
    first: u64,
    /// How many of them are held.
    held: usize,
}

/// A command in a stream.
struct Slot<T> {
    order: Order,
    kind: Kind,
    stage: Stage<T>,
}

impl<T> Slot<T> {
    /// Whether it is a native command in flight.
    fn is_native(&self) -> bool {
        matches!(&self.stage, Stage::Released(Some(executor)) if executor.queue().is_some())
    }
}

/// Where a command is.
pub enum Stage<T> {
    /// Commands that it follows are not complete.
    Held(Box<T>),
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
    Native(QueueNumber),
    /// Something else is unfinished.
    Blocked,
}

impl Progress {
    fn of<T>(stage: &Stage<T>) -> Self {
        match stage {
            Stage::Done => Self::Done,
            Stage::Released(Some(executor)) => executor.queue().map_or(Self::Blocked, Self::Native),
            Stage::Held(_) | Stage::Released(None) => Self::Blocked,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, other) => other,
            (this, Self::Done) => this,
            (Self::Native(queue), Self::Native(other)) if queue == other => self,
            _ => Self::Blocked,
        }
    }

    /// Whether a command that follows them may be released, and the queue that it has to be enqueued to.
    fn admits(self, kind: Kind) -> Option<Option<QueueNumber>> {
        match self {
            Self::Done => Some(None),
            Self::Native(queue) if kind.is_chainable() => Some(Some(queue)),
            Self::Native(_) | Self::Blocked => None,
        }
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            commands: VecDeque::new(),
            first: 0,
            held: 0,
        }
    }
}

impl<T> Slots<T> {
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
    fn slot(&mut self, number: u64) -> Option<&mut Slot<T>> {
        let index = number.checked_sub(self.first)?;
        self.commands.get_mut(usize::try_from(index).ok()?)
    }

    /// Appends a command.
    pub fn push(&mut self, order: Order, kind: Kind, stage: Stage<T>) {
        self.held += usize::from(matches!(stage, Stage::Held(_)));
        self.commands.push_back(Slot { order, kind, stage });
    }

    /// Notes the executor of a command.
    pub fn executing(&mut self, number: u64, executor: Executor) {
        if let Some(slot) = self.slot(number) {
            slot.stage = Stage::Released(Some(executor));
        }
    }

    /// Notes that a command is complete. Returns what it was, for the caller to drop without a lock.
    #[must_use]
    pub fn complete(&mut self, number: u64) -> Option<Stage<T>> {
        let slot = self.slot(number);
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

    /// The last command, with its number, if the native commands before it hold it back.
    pub fn last_behind_native(&self) -> Option<(u64, &T)> {
        let mut slots = self.commands.iter().rev();
        if let Some(last) = slots.next()
            && last.order.follows_all()
            && let Stage::Held(command) = &last.stage
            && slots.take(WINDOW).any(|slot| slot.is_native())
        {
            return Some((self.end() - 1, command));
        }
        None
    }

    /// Passes the commands that may be executed now to `begin`, each with the native queue of the commands in flight that it
    /// follows.
    pub fn release(&mut self, mut begin: impl FnMut(Box<T>, Option<QueueNumber>)) {
        let (mut all, mut barriers) = (Progress::Done, Progress::Done);
        for slot in self.commands.iter_mut().take(WINDOW) {
            if self.held == 0 || matches!(barriers, Progress::Blocked) {
                return;
            }
            let before = if slot.order.follows_all() {
                all
            } else {
                barriers
            };
            if let Stage::Held(_) = &slot.stage
                && let Some(queue) = before.admits(slot.kind)
                && let Stage::Held(command) = mem::replace(&mut slot.stage, Stage::Released(None))
            {
                self.held -= 1;
                begin(command, queue);
            }
            let progress = Progress::of(&slot.stage);
            all = all.and(progress);
            if slot.order.holds_later() {
                barriers = barriers.and(progress);
            }
        }
    }
}
