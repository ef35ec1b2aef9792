//! Sequences of commands, those of one queue or immediate list or of an engine, and the tokens that advance the commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::IntoIter;
use zeusm_process::{Condvar, ForkSafe, Lazy, Mutex, MutexGuard, Reinit};

use super::changes::Changes;
use super::fault::Faults;
use super::help::{Executor, InOrder, NATIVE_QUEUES, QueueNumber};
use super::operation::{Kind, NativeEvent, Operation, Order, Pins};
use super::priority::Priority;
use super::ready::{Advance, Ready, ReadyList};
use super::retired::retire_or_drop;
use super::signal::Signal;
use super::slots::{Slots, Stage};
use super::wait::{WaitState, wait};
use crate::abi::result::ZeResult;
use crate::system::clock::{self, Deadline};

/// What executes the commands that may begin.
pub trait Execute: Send + Sync {
    /// Executes a command that has passed the signals of its wait list, and completes it.
    fn execute(&'static self, token: Box<Token>);

    /// A native queue.
    fn queue(&'static self, number: QueueNumber) -> &'static dyn InOrder;

    /// Assigns a native queue to a sequence of commands.
    fn assign_queue(&'static self) -> QueueNumber;

    /// Whether a worker takes over what must not be done in a callback of the native runtime.
    fn may_have_callbacks(&'static self) -> bool;
}

/// Finds what executes the commands of this process, or of the simulation that this thread runs.
static EXECUTION: Lazy<fn() -> &'static dyn Execute> = Lazy::new();

/// Has commands executed by what `find` returns.
pub fn register(find: fn() -> &'static dyn Execute) {
    EXECUTION.get_or_make(|| find);
}

/// What executes the commands of this process.
pub fn execution() -> &'static dyn Execute {
    let find = EXECUTION.get();
    find.expect("the initialisation registers it, before any command")()
}

/// The native command with this `Native::key` has ended. May be called in a callback of the native runtime.
pub fn ended(key: u64, outcome: ZeResult) {
    let (position, number) = (key / NATIVE_QUEUES as u64, key % NATIVE_QUEUES as u64);
    let queue = execution().queue(QueueNumber(number as usize));
    queue.ended(position, outcome);
}

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
    state: Mutex<Slots<Token>>,
    changed: Condvar,
    /// A copy of [`Slots::end`], which can be read without the lock: all commands before it are submitted.
    submitted: AtomicU64,
    /// A copy of [`Slots::first`], as above: all commands before it are complete.
    finished: AtomicU64,
    /// Of a stream: the number of the first command in its device's engine after its own there.
    entered: AtomicU64,
    faults: Arc<Faults>,
    /// The queue for native commands that follow none in flight, assigned on first use.
    home: Lazy<QueueNumber>,
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

    /// Of a stream: the number of the first command in its device's engine after its own there; 0 in a fork's child.
    pub fn entered(&self) -> &AtomicU64 {
        &self.own().entered
    }

    /// Whether all commands are complete.
    pub fn is_idle(&self) -> bool {
        let own = self.own();
        // Loaded first, as both only grow: a command that is submitted in between does not count.
        let submitted = own.submitted.load(Ordering::Acquire);
        own.finished.load(Ordering::Acquire) >= submitted
    }

    /// Appends a command and returns its number.
    pub fn push(
        &self,
        state: &mut Slots<Token>,
        order: Order,
        kind: Kind,
        stage: Stage<Token>,
    ) -> u64 {
        let number = state.end();
        state.push(order, kind, stage);
        self.own().submitted.store(number + 1, Ordering::Release);
        number
    }

    /// Waits until the commands that have been submitted, and whose numbers are less than `end`, are complete; `false` when the
    /// deadline passes first.
    pub fn wait(&self, end: u64, deadline: Deadline) -> bool {
        let own = self.own();
        let target = own.submitted.load(Ordering::Acquire).min(end);
        let is_done = || own.finished.load(Ordering::Acquire) >= target;
        let look = |state: &mut Slots<Token>| {
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
    pub fn lock(&self) -> MutexGuard<'_, Slots<Token>> {
        self.own().state.lock()
    }

    /// Adds the commands that may be executed now to `ready`.
    pub fn release(self: &Arc<Self>, state: &mut Slots<Token>, ready: &mut ReadyList) {
        state.release(|mut token, queue| {
            token.sequence = Some(Arc::clone(self));
            token.queue = queue;
            ready.push(token as Ready);
        });
    }

    /// Publishes the executor of a command. Returns the commands that may be enqueued behind it.
    fn executing(self: &Arc<Self>, number: u64, executor: Executor) -> ReadyList {
        let mut ready = ReadyList::new();
        let own = self.own();
        let mut state = own.state.lock();
        state.executing(number, executor);
        self.release(&mut state, &mut ready);
        own.changed.notify_all();
        ready
    }

    /// Completes a command and adds the commands that it releases to `ready`.
    pub fn complete(self: &Arc<Self>, number: u64, ready: &mut ReadyList) {
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

/// A submitted operation. There is one token for it, and once its sequence has released it, the token's owner advances it: a
/// thread, a signal of its wait list, the native queue that it is in flight in, or the workers.
pub struct Token {
    /// Those among which it is, once it is released: before, they own it.
    pub sequence: Option<Arc<Sequence>>,
    /// Its number there.
    pub number: u64,
    /// The operation itself.
    pub operation: Arc<dyn Operation>,
    /// How that is executed.
    pub kind: Kind,
    /// Keeps the memory that it uses alive until it is complete.
    pub pins: Pins,
    /// The signals that it has still to pass, once the sequence has released it.
    pub waits: IntoIter<[Arc<Signal>; 4]>,
    /// The signal that it waits for, if other processes share it: they may set it when nothing else in this process refers to
    /// it. A signal of this process alone does not live for the commands that wait for it, as nothing could set it.
    pub shared: Option<Arc<Signal>>,
    /// What its completion does to signals.
    pub changes: Changes,
    /// The errors of the stream to whose host synchronizations its error is reported.
    pub faults: Arc<Faults>,
    /// The native queue of the commands in flight that it follows.
    pub queue: Option<QueueNumber>,
    /// Its completion event, once it is enqueued there.
    pub event: Option<Arc<dyn NativeEvent>>,
}

impl Token {
    /// The native queue for it if it follows no command in flight.
    pub fn home(&self) -> QueueNumber {
        let home = self.sequence.as_ref().map(|sequence| {
            let home = &sequence.own().home;
            *home.get_or_make(|| execution().assign_queue())
        });
        home.unwrap_or_default()
    }

    /// Records an error for waits for its signal, and for its stream.
    pub fn note(&self, outcome: ZeResult) {
        self.changes.note(outcome);
        self.faults.note(outcome);
    }

    /// Whether its start and end times are needed.
    pub fn is_timed(&self) -> bool {
        self.changes.is_timed()
    }

    /// The time, if its start and end times are needed.
    pub fn now_if_timed(&self) -> u64 {
        if self.is_timed() { clock::now() } else { 0 }
    }

    /// Publishes the executor to the sequence and the command's signal. Returns the commands that may be enqueued behind
    /// it now, for the caller to dispatch when it holds no lock.
    #[must_use]
    pub fn executing(&self, executor: &Executor) -> ReadyList {
        if let Some(signal) = self.changes.signal() {
            signal.expect(executor.clone());
        }
        let sequence = self.sequence.as_ref();
        let executing = sequence.map(|it| it.executing(self.number, executor.clone()));
        executing.unwrap_or_default()
    }

    /// Completes the command: unpins its memory, then changes its signals, then releases what follows it in the sequence.
    /// Returns the commands that are ready now.
    #[must_use]
    pub fn complete(mut self: Box<Self>, started: u64, ended: u64) -> ReadyList {
        self.pins.clear();
        self.changes.conclude(&self.faults);
        let mut ready = self.changes.make(started, ended);
        if let Some(sequence) = &self.sequence {
            sequence.complete(self.number, &mut ready);
        }
        retire_or_drop(self);
        ready
    }
}

impl Advance for Token {
    fn priority(&self) -> Priority {
        let sequence = self.sequence.as_ref();
        sequence.map(|it| it.priority).unwrap_or_default()
    }

    fn chain(&mut self, queue: QueueNumber) -> bool {
        let possible = self.kind.is_chainable() && self.queue.is_none_or(|known| known == queue);
        if possible {
            self.queue = Some(queue);
        }
        possible
    }

    fn advance(mut self: Box<Self>) {
        while let Some(signal) = self.waits.next() {
            self.shared = signal.is_shared().then(|| Arc::clone(&signal));
            match signal.admit(self) {
                Some(admitted) => self = admitted,
                None => return,
            }
        }
        execution().execute(self);
    }
}
