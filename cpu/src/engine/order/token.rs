//! Commands: submitted operations, from submission to completion.

use std::sync::Arc;

use smallvec::IntoIter;
use zeusm_process::Lazy;

use super::changes::Changes;
use super::fault::Faults;
use super::help::{Executor, QueueNumber};
use super::operation::{Kind, Operation, Pins};
use super::priority::Priority;
use super::ready::{Advance, Ready};
use super::retired::retire_or_drop;
use super::signal::Signal;
use crate::abi::result::ZeResult;
use crate::system::clock;

/// What executes the commands that may begin.
pub trait Execute: Send + Sync {
    /// Executes a command that has passed the signals of its wait list, and completes it.
    fn execute(&'static self, token: Token);

    /// Assigns a native queue to a sequence of commands.
    fn assign_queue(&'static self) -> Box<dyn Home>;

    /// Whether a worker takes over what must not be done in a callback of the native runtime.
    fn may_have_callbacks(&'static self) -> bool;
}

/// The native queue that a sequence of commands is assigned to, until dropped.
pub trait Home: Send + Sync {
    /// Its number.
    fn number(&self) -> QueueNumber;
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

/// A submitted operation.
pub struct Command {
    /// The operation itself.
    pub operation: Arc<dyn Operation>,
    /// How that is executed.
    pub kind: Kind,
    /// Keeps the memory that it uses alive until it is complete.
    pub pins: Pins,
    /// The signals that it has still to pass, once the stream has released it.
    pub waits: IntoIter<[Arc<Signal>; 4]>,
    /// What its completion does to signals.
    pub changes: Changes,
    /// The errors of the stream to whose host synchronizations its error is reported.
    pub faults: Arc<Faults>,
}

/// A sequence of commands, as those see it that it has released.
pub trait Releases: Send + Sync {
    /// That of its commands.
    fn priority(&self) -> Priority;

    /// The queue for native commands that follow none in flight.
    fn home(&self) -> QueueNumber;

    /// Publishes the executor of a command. Returns the commands that may be enqueued behind it.
    fn executing(self: Arc<Self>, number: u64, executor: Executor) -> Vec<Ready>;

    /// Completes a command and adds the commands that it releases to `ready`.
    fn complete(self: Arc<Self>, number: u64, ready: &mut Vec<Ready>);
}

/// A command that its stream has released. There is one token for it, and the token's owner advances the command: a
/// thread, a signal of its wait list, the native queue that it is in flight in, or the workers.
pub struct Token {
    sequence: Arc<dyn Releases>,
    number: u64,
    command: Box<Command>,
    /// The signal that it waits for, if other processes share it: they may set it when nothing else in this process refers to
    /// it. A signal of this process alone does not live for the commands that wait for it, as nothing could set it.
    shared: Option<Arc<Signal>>,
    /// The native queue of the commands in flight that it follows.
    queue: Option<QueueNumber>,
}

impl Token {
    /// The token of command `number` of a sequence, which follows native commands in flight in `queue` only.
    pub fn new(
        sequence: Arc<dyn Releases>,
        number: u64,
        command: Box<Command>,
        queue: Option<QueueNumber>,
    ) -> Self {
        Self {
            sequence,
            number,
            command,
            shared: None,
            queue,
        }
    }

    /// How it is executed.
    pub fn kind(&self) -> Kind {
        self.command.kind
    }

    /// The native queue of the commands in flight that it follows.
    pub fn queue(&self) -> Option<QueueNumber> {
        self.queue
    }

    /// The native queue for it if it follows no command in flight.
    pub fn home(&self) -> QueueNumber {
        self.sequence.home()
    }

    /// The operation.
    pub fn operation(&self) -> &Arc<dyn Operation> {
        &self.command.operation
    }

    /// Records an error for waits for its signal, and for its stream.
    pub fn note(&self, outcome: ZeResult) {
        self.command.changes.note(outcome);
        self.command.faults.note(outcome);
    }

    /// Whether its start and end times are needed.
    pub fn is_timed(&self) -> bool {
        self.command.changes.is_timed()
    }

    /// The time, if its start and end times are needed.
    pub fn now_if_timed(&self) -> u64 {
        if self.is_timed() { clock::now() } else { 0 }
    }

    /// Publishes the executor to the stream and the command's signal. Returns the commands that may be enqueued behind
    /// it now, for the caller to dispatch when it holds no lock.
    #[must_use]
    pub fn executing(&self, executor: &Executor) -> Vec<Ready> {
        if let Some(signal) = self.command.changes.signal() {
            signal.expect(executor.clone());
        }
        Arc::clone(&self.sequence).executing(self.number, executor.clone())
    }

    /// Completes the command: unpins its memory, then changes its signals, then releases what follows it in the stream.
    /// Returns the commands that are ready now.
    #[must_use]
    pub fn complete(self, started: u64, ended: u64) -> Vec<Ready> {
        let Self {
            sequence,
            number,
            command,
            ..
        } = self;
        let Command {
            operation,
            pins,
            changes,
            faults,
            ..
        } = *command;
        drop(pins);
        retire_or_drop(operation);
        if changes.concludes() {
            changes.note(faults.conclude());
        }
        let mut ready = changes.make(started, ended);
        sequence.complete(number, &mut ready);
        ready
    }
}

impl Advance for Token {
    fn priority(&self) -> Priority {
        self.sequence.priority()
    }

    fn chain(&mut self, queue: QueueNumber) -> bool {
        let possible =
            self.command.kind.is_chainable() && self.queue.is_none_or(|known| known == queue);
        if possible {
            self.queue = Some(queue);
        }
        possible
    }

    fn advance(self: Box<Self>) {
        let mut token = *self;
        while let Some(signal) = token.command.waits.next() {
            token.shared = signal.is_shared().then(|| Arc::clone(&signal));
            match signal.admit(token) {
                Some(admitted) => token = admitted,
                None => return,
            }
        }
        execution().execute(token);
    }
}
