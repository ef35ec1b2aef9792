//! Sequences of commands: those of one queue or immediate list, or of an engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zeusm_process::{Condvar, ForkSafe, Lazy, Mutex, MutexGuard, Reinit};

use super::dependence::Order;
use super::fault::Faults;
use super::help::{Executor, QueueNumber};
use super::priority::Priority;
use super::ready::Ready;
use super::slots::{Slots, Stage};
use super::token::{Home, Releases, Token, execution};
use super::wait::{WaitState, wait};
use crate::system::clock::Deadline;

/// A sequence of commands, which they share.
#[derive(Default)]
pub struct Sequence {
    own: ForkSafe<Own>,
    priority: Priority,
}

/// The state for one process: a fork's child has an empty stream.
#[derive(Default)]
struct Own {
    /// Held for a few instructions; only locks of signals are taken under it.
    state: Mutex<Slots>,
    changed: Condvar,
    /// A copy of [`Slots::end`], which can be read without the lock: all commands before it are submitted.
    submitted: AtomicU64,
    /// A copy of [`Slots::first`], as above: all commands before it are complete.
    finished: AtomicU64,
    faults: Arc<Faults>,
    /// The queue for native commands that follow none in flight, assigned on first use.
    home: Lazy<Box<dyn Home>>,
}

impl Reinit for Own {
    fn reinit(&self) -> Self {
        Self::default()
    }
}

impl Sequence {
    fn own(&self) -> &Own {
        self.own.get()
    }

    /// An empty one.
    pub fn new(priority: Priority) -> Self {
        Self {
            own: ForkSafe::default(),
            priority,
        }
    }

    /// The errors of its commands.
    pub fn faults(&self) -> &Arc<Faults> {
        &self.own().faults
    }

    /// Whether all commands are complete.
    pub fn is_idle(&self) -> bool {
        let own = self.own();
        // Loaded first, as both only grow: a command that is submitted in between does not count.
        let submitted = own.submitted.load(Ordering::Acquire);
        own.finished.load(Ordering::Acquire) >= submitted
    }

    /// Appends a command and returns its number.
    pub fn push(&self, state: &mut Slots, order: Order, stage: Stage) -> u64 {
        let number = state.end();
        state.push(order, stage);
        self.own().submitted.store(number + 1, Ordering::Release);
        number
    }

    /// Waits until the commands that have been submitted, and whose numbers are less than `end`, are complete; `false` when the
    /// deadline passes first.
    pub fn wait(&self, end: u64, deadline: Deadline) -> bool {
        let own = self.own();
        let target = own.submitted.load(Ordering::Acquire).min(end);
        let is_done = || own.finished.load(Ordering::Acquire) >= target;
        let look = |state: &mut Slots| {
            if state.first() >= target {
                return WaitState::Done;
            }
            let executor = state.executor_before(target);
            executor.map_or(WaitState::Unknown, WaitState::Executing)
        };
        is_done() || wait(&own.state, &own.changed, deadline, look, is_done)
    }

    /// The executor of the last command before number `end` that is being executed.
    pub fn executor_before(&self, end: u64) -> Option<Executor> {
        self.own().state.lock().executor_before(end)
    }

    /// Whether all commands before number `end` are complete.
    pub fn has_finished(&self, end: u64) -> bool {
        self.own().finished.load(Ordering::Acquire) >= end
    }

    /// Locks its commands.
    pub fn lock(&self) -> MutexGuard<'_, Slots> {
        self.own().state.lock()
    }

    /// Adds the commands that may be executed now to `ready`.
    pub fn release(self: &Arc<Self>, state: &mut Slots, ready: &mut Vec<Ready>) {
        state.release(|released| {
            let sequence = Arc::clone(self) as Arc<dyn Releases>;
            let (number, command, queue) = (released.number, released.command, released.queue);
            ready.push(Box::new(Token::new(sequence, number, command, queue)));
        });
    }
}

impl Releases for Sequence {
    fn priority(&self) -> Priority {
        self.priority
    }

    fn home(&self) -> QueueNumber {
        let home = &self.own().home;
        home.get_or_make(|| execution().assign_queue()).number()
    }

    fn executing(self: Arc<Self>, number: u64, executor: Executor) -> Vec<Ready> {
        let mut ready = Vec::new();
        let own = self.own();
        let mut state = own.state.lock();
        state.executing(number, executor);
        self.release(&mut state, &mut ready);
        own.changed.notify_all();
        ready
    }

    fn complete(self: Arc<Self>, number: u64, ready: &mut Vec<Ready>) {
        let own = self.own();
        let mut state = own.state.lock();
        let stage = state.complete(number);
        own.finished.store(state.first(), Ordering::Release);
        self.release(&mut state, ready);
        drop(state);
        own.changed.notify_all();
        drop(stage);
    }
}
