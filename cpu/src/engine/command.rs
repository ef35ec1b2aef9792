//! Commands: submitted operations, from submission to completion.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use level_zero_sys as sys;
use smallvec::IntoIter;
use zeusm_process::Mutex;

use super::changes::Changes;
use super::native::{Native, NativeQueue};
use super::native_wait::Request;
use super::operation::{Kind, Operation, Pins};
use super::priority::Priority;
use super::signal::Signal;
use super::stream::Shared;
use super::workers::{self, dispatch, retire_or_drop};
use crate::abi::result::ZeResult;
use crate::check::DeviceCode;
use crate::system::clock::{self, Deadline};

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
    /// The stream to whose host synchronizations its error is reported. That may own the command.
    pub submitter: Weak<Shared>,
}

/// A command that its stream has released. There is one token for it, and the token's owner advances the command: a
/// thread, a signal of its wait list, the native queue that it is in flight in, or the workers.
pub struct Token {
    stream: Arc<Shared>,
    sequence: u64,
    command: Box<Command>,
    /// The signal that it waits for, if other processes share it: they may set it when nothing else in this process refers to
    /// it. A signal of this process alone does not live for the commands that wait for it, as nothing could set it.
    shared: Option<Arc<Signal>>,
    /// The native queue of the commands in flight that it follows.
    queue: Option<&'static NativeQueue>,
}

impl Token {
    /// The token of command number `sequence` of `stream`, a stream or an engine, which follows native commands in flight in
    /// `queue` only.
    pub fn new(
        stream: Arc<Shared>,
        sequence: u64,
        command: Box<Command>,
        queue: Option<&'static NativeQueue>,
    ) -> Self {
        Self {
            stream,
            sequence,
            command,
            shared: None,
            queue,
        }
    }

    /// Orders it after a native command in flight by enqueueing it to the same `queue`, if that is possible.
    pub fn chain(&mut self, queue: &'static NativeQueue) -> bool {
        let possible = self.command.kind.is_chainable()
            && self.queue.is_none_or(|known| std::ptr::eq(known, queue));
        if possible {
            self.queue = Some(queue);
        }
        possible
    }

    /// That of its stream.
    pub fn priority(&self) -> Priority {
        self.stream.priority()
    }

    /// Advances the command: past the signals of its wait list, and then into execution.
    pub fn advance(mut self) {
        while let Some(signal) = self.command.waits.next() {
            self.shared = signal.is_shared().then(|| Arc::clone(&signal));
            match signal.admit(self) {
                Some(token) => self = token,
                None => return,
            }
        }
        match (self.command.kind, self.queue) {
            (Kind::Marker, None) => {
                let now = self.now_if_timed();
                dispatch(self.complete(now, now));
            }
            (Kind::Marker, Some(queue)) => queue.mark(self),
            (Kind::Short, _) => self.run(),
            (Kind::Long, _) => workers::work(Work::new(self)),
            // A callback of the native runtime must not call that runtime.
            (Kind::Native | Kind::NativeDeferred, _) if workers::is_in_callback() => {
                workers::advance(self);
            }
            (Kind::Native | Kind::NativeDeferred, Some(queue)) => queue.enqueue(self),
            (Kind::Native | Kind::NativeDeferred, None) => {
                let queue = self.stream.queue();
                queue.enqueue(self);
            }
        }
    }

    fn run(self) {
        let started = self.now_if_timed();
        self.note(run_all(&*self.command.operation));
        let ended = self.now_if_timed();
        dispatch(self.complete(started, ended));
    }

    /// The operation.
    pub fn operation(&self) -> &dyn Operation {
        &*self.command.operation
    }

    /// Records an error for waits for its signal, and for its stream.
    pub fn note(&self, outcome: ZeResult) {
        self.command.changes.note(outcome);
        if outcome.is_err()
            && let Some(submitter) = self.command.submitter.upgrade()
        {
            submitter.faults().note(outcome);
        }
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
    /// it now, for the caller to [`dispatch`] when it holds no lock.
    #[must_use]
    pub fn executing(&self, executor: &Executor) -> Vec<Token> {
        if let Some(signal) = self.command.changes.signal() {
            signal.expect(executor.clone());
        }
        self.stream.executing(self.sequence, executor.clone())
    }

    /// Completes the command: unpins its memory, then changes its signals, then releases what follows it in the stream.
    /// Returns the commands that are ready now.
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
            changes,
            submitter,
            ..
        } = *command;
        drop(pins);
        retire_or_drop(operation);
        if changes.concludes()
            && let Some(submitter) = submitter.upgrade()
        {
            changes.note(submitter.faults().conclude());
        }
        let mut ready = changes.make(started, ended);
        stream.complete(sequence, &mut ready);
        ready
    }
}

/// Runs a part; a panic becomes an error of the command.
fn run(operation: &(impl Operation + ?Sized), part: usize) -> ZeResult {
    let _device_code = DeviceCode::begin();
    catch_unwind(AssertUnwindSafe(|| operation.run(part)))
        .unwrap_or(Err(sys::ZE_RESULT_ERROR_UNKNOWN))
}

/// Runs all parts, one after another.
pub fn run_all(operation: &(impl Operation + ?Sized)) -> ZeResult {
    let parts = 0..operation.parts().max(1);
    parts
        .map(|part| run(operation, part))
        .fold(Ok(()), ZeResult::and)
}

/// How long a short part takes at most, unless the machine is very busy: a thread that waits with a timeout begins none later.
const SHORT_PART: Duration = Duration::from_millis(5);

/// A long command whose parts are being run.
pub struct Work {
    operation: Arc<dyn Operation>,
    priority: Priority,
    parts: usize,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    started: AtomicU64,
    /// Taken by the thread that finishes the last part.
    token: Mutex<Option<Token>>,
}

impl Work {
    fn new(token: Token) -> Arc<Self> {
        let operation = Arc::clone(&token.command.operation);
        let work = Arc::new(Self {
            parts: operation.parts().max(1),
            operation,
            priority: token.priority(),
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            token: Mutex::default(),
        });
        let executor = Executor::Workers(Arc::clone(&work));
        // Other threads may run all parts as soon as the executor is published; the last one then waits for the token's
        // lock.
        let mut place = work.token.lock();
        let ready = place.insert(token).executing(&executor);
        drop(place);
        // No command can be chained to it, so none is ready before its completion.
        debug_assert!(ready.is_empty());
        work
    }

    /// That of its command.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How many threads can work on it at once.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Runs parts until none is left to claim; with an `end`, short parts until then. Returns whether it ran one.
    pub fn run(&self, end: Option<Instant>) -> bool {
        let mut any = false;
        loop {
            if let Some(end) = end
                && !(self.operation.has_short_parts() && Instant::now() < end)
            {
                return any;
            }
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
                    let ready = token.complete(started, clock::now());
                    if end.is_some() {
                        // To run them takes any time, as many others may follow them.
                        ready.into_iter().for_each(workers::advance);
                    } else {
                        dispatch(ready);
                    }
                }
                return true;
            }
        }
    }
}

/// The executor of a command.
#[derive(Clone)]
pub enum Executor {
    /// Another runtime.
    Native(Native),
    /// None yet: it is held in a stream, behind all commands before this number.
    Behind(Weak<Shared>, u64),
    /// Threads of ours.
    Workers(Arc<Work>),
}

impl Executor {
    /// Helps until the command is complete, there is nothing left to do for this thread, or the deadline is near. `false` when
    /// the thread should sleep.
    pub fn help(&self, deadline: Deadline) -> bool {
        match self {
            // A kernel may take any time.
            Self::Native(native) => matches!(deadline, Deadline::Never) && native.wait(),
            Self::Behind(stream, number) => {
                let mut last = None;
                while let Some(stream) = stream.upgrade()
                    && let Some(executor) = stream.executor_before(*number)
                    && last != Some(executor.identity())
                    && executor.help(deadline)
                {
                    last = Some(executor.identity());
                }
                last.is_some()
            }
            Self::Workers(work) => work.run(deadline.less(SHORT_PART)),
        }
    }

    /// Asks for another thread's help while the caller sleeps.
    pub fn request_help(&self) -> Option<Request<'static>> {
        match self {
            Self::Native(native) => Some(native.request_help()),
            Self::Behind(stream, number) => {
                let executor = stream.upgrade()?.executor_before(*number);
                executor?.request_help()
            }
            Self::Workers(_) => None,
        }
    }

    /// Tells one execution from another.
    pub fn identity(&self) -> (usize, u64) {
        match self {
            Self::Native(native) => native.identity(),
            Self::Behind(stream, number) => (stream.as_ptr() as usize, *number),
            Self::Workers(work) => (Arc::as_ptr(work) as usize, 0),
        }
    }
}
