//! Commands: an operation on its way from its submission to its completion.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use level_zero_sys as sys;
use smallvec::SmallVec;

use super::native::{Lane, Native};
use super::operation::{Kind, Operation, Pins};
use super::signal::Signal;
use super::stream::Shared;
use super::waiter::Request;
use super::workers::{self, dispatch, retire_or_drop};
use crate::abi::result::Answer;
use crate::process::sync::Mutex;
use crate::system::clock;

/// What was submitted.
pub struct Command {
    /// What it does.
    pub operation: Arc<dyn Operation>,
    /// How that is executed.
    pub kind: Kind,
    /// Holds the memory that it uses until it is complete.
    pub pins: Pins,
    /// What it waits for once the order of its stream lets it.
    pub waits: SmallVec<[Arc<Signal>; 4]>,
    /// What it sets at its end.
    pub signal: Option<Arc<Signal>>,
}

/// A command that the order of its stream has released: there is one token of it, and the owner of the token moves the
/// command on. The owner is a thread, a signal that the command waits for, a lane that it is in flight in, or the
/// workers.
pub struct Token {
    stream: Arc<Shared>,
    sequence: u64,
    command: Box<Command>,
    /// How many of the waits are over.
    passed: usize,
    /// The lane of the native commands in flight that it follows.
    lane: Option<&'static Lane>,
}

impl Token {
    /// The token of command number `sequence` of `stream`, which follows native commands in flight in `lane` only.
    pub fn new(
        stream: Arc<Shared>,
        sequence: u64,
        command: Box<Command>,
        lane: Option<&'static Lane>,
    ) -> Self {
        Self {
            stream,
            sequence,
            command,
            passed: 0,
            lane,
        }
    }

    /// Has it follow a native command in flight in `lane`, by being enqueued to the same lane, if that is possible.
    pub fn chain(&mut self, lane: &'static Lane) -> bool {
        let possible = self.command.kind.is_chainable()
            && self.lane.is_none_or(|known| std::ptr::eq(known, lane));
        if possible {
            self.lane = Some(lane);
        }
        possible
    }

    /// Moves the command on: past the signals that it waits for, and then into execution.
    pub fn advance(mut self) {
        while let Some(signal) = self.command.waits.get(self.passed).cloned() {
            match signal.admit(self) {
                Some(token) => self = token,
                None => return,
            }
            self.passed += 1;
        }
        match (self.command.kind, self.lane) {
            (Kind::Marker, None) => {
                let now = self.now_if_timed();
                dispatch(self.complete(now, now));
            }
            (Kind::Marker, Some(lane)) => lane.mark(self),
            (Kind::Short, _) => self.run(),
            (Kind::Long, _) => workers::work(Work::new(self)),
            // Another runtime's own thread must not call that runtime from its callback.
            (Kind::Native | Kind::NativeDeferred, _) if workers::is_foreign() => {
                workers::advance(self);
            }
            (Kind::Native | Kind::NativeDeferred, Some(lane)) => lane.enqueue(self),
            (Kind::Native | Kind::NativeDeferred, None) => {
                let lane = self.stream.lane();
                lane.enqueue(self);
            }
        }
    }

    fn run(self) {
        let started = self.now_if_timed();
        self.stream.note(run_all(&*self.command.operation));
        let ended = self.now_if_timed();
        dispatch(self.complete(started, ended));
    }

    /// The operation.
    pub fn operation(&self) -> &dyn Operation {
        &*self.command.operation
    }

    /// Notes an error for the stream's next host synchronization.
    pub fn note(&self, outcome: Answer) {
        self.stream.note(outcome);
    }

    /// Whether the times at which it runs are wanted.
    pub fn is_timed(&self) -> bool {
        let signal = self.command.signal.as_ref();
        signal.is_some_and(|signal| signal.is_timed())
    }

    fn now_if_timed(&self) -> u64 {
        if self.is_timed() { clock::now() } else { 0 }
    }

    /// Tells the stream and those who wait for its signal what executes the command. The commands that may follow now
    /// are to be [`dispatch`]ed, which the caller does when it holds no lock.
    #[must_use]
    pub fn executing(&self, executor: &Executor) -> Vec<Token> {
        if let Some(signal) = &self.command.signal {
            signal.expect(executor.clone());
        }
        self.stream.executing(self.sequence, executor.clone())
    }

    /// Completes the command: lets go of memory, sets the signal, and only then lets the stream go on. Returns the
    /// commands that are ready now.
    #[must_use]
    pub fn complete(self, started: u64, ended: u64) -> Vec<Token> {
        let Self {
            stream,
            sequence,
            command,
            ..
        } = self;
        let Command {
            operation,
            pins,
            signal,
            ..
        } = *command;
        drop(pins);
        retire_or_drop(operation);
        let mut ready = signal.map_or_else(Vec::new, |signal| signal.set(started, ended));
        stream.complete(sequence, &mut ready);
        ready
    }
}

/// Runs a part; a panic is an error of the command, and neither of the thread nor of what follows.
fn run(operation: &(impl Operation + ?Sized), part: usize) -> Answer {
    catch_unwind(AssertUnwindSafe(|| operation.run(part)))
        .unwrap_or(Err(sys::ZE_RESULT_ERROR_UNKNOWN))
}

/// Runs all parts, one after another.
pub fn run_all(operation: &(impl Operation + ?Sized)) -> Answer {
    let parts = 0..operation.parts().max(1);
    parts
        .map(|part| run(operation, part))
        .fold(Ok(()), Answer::and)
}

/// A long command whose parts are being run.
pub struct Work {
    operation: Arc<dyn Operation>,
    parts: usize,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    started: AtomicU64,
    /// Taken by the thread that ends the last part.
    token: Mutex<Option<Token>>,
}

impl Work {
    fn new(token: Token) -> Arc<Self> {
        let operation = Arc::clone(&token.command.operation);
        let work = Arc::new(Self {
            parts: operation.parts().max(1),
            operation,
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            token: Mutex::default(),
        });
        let executor = Executor::Workers(Arc::clone(&work));
        // Other threads may run all parts as soon as they know of it; the last one then waits for the token.
        let mut place = work.token.lock();
        let ready = place.insert(token).executing(&executor);
        drop(place);
        // Nothing is chained to it, so nothing could follow before its end.
        debug_assert!(ready.is_empty());
        work
    }

    /// How many threads can work on it at once.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Runs parts until none is left to claim. Whether there was one.
    pub fn run(&self) -> bool {
        let mut any = false;
        loop {
            let part = self.claimed.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return any;
            }
            any = true;
            if part == 0 {
                self.started.store(clock::now(), Ordering::Relaxed);
            }
            let outcome = run(&*self.operation, part);
            if outcome.is_err()
                && let Some(token) = &*self.token.lock()
            {
                token.note(outcome);
            }
            if self.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
                let token = self.token.lock().take();
                if let Some(token) = token {
                    let started = self.started.load(Ordering::Relaxed);
                    dispatch(token.complete(started, clock::now()));
                }
                return true;
            }
        }
    }
}

/// What executes a command.
#[derive(Clone)]
pub enum Executor {
    /// Another runtime.
    Native(Native),
    /// Threads of ours.
    Workers(Arc<Work>),
}

impl Executor {
    /// Takes part in the work until the command is complete or there is nothing left to do for this thread. `false`
    /// when it had better sleep.
    pub fn help(&self) -> bool {
        match self {
            Self::Native(native) => native.wait(),
            Self::Workers(work) => work.run(),
        }
    }

    /// Asks for another thread's help while the caller sleeps.
    pub fn request_help(&self) -> Option<Request<'static>> {
        match self {
            Self::Native(native) => Some(native.request_help()),
            Self::Workers(_) => None,
        }
    }

    /// Tells one execution from another.
    pub fn identity(&self) -> (usize, u64) {
        match self {
            Self::Native(native) => native.identity(),
            Self::Workers(work) => (Arc::as_ptr(work) as usize, 0),
        }
    }
}
