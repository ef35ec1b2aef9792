//! Models of the engine's signals, the host threads that wait for them, and the role of the thread that waits in the native
//! runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering as LoomOrdering};
use loom::thread;

use self::native::wait::Waiter;
use self::order::changes::Changes;
use self::order::{Advance, Executor, Help, QueueNumber, Signal};
use crate::Model;
use crate::system::clock::Deadline;

mod native;
mod order;

/// A released command. Like the engine's token it owns heap memory.
struct Token(Box<usize>);

impl Advance for Token {
    fn chain(&mut self, _queue: QueueNumber) -> bool {
        false
    }

    fn number(&self) -> usize {
        *self.0
    }
}

/// A command with one part, which exactly one thread executes.
struct Work {
    claimed: AtomicBool,
    operation: Box<dyn Fn() + Send + Sync>,
}

impl Work {
    fn new(operation: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            claimed: AtomicBool::new(false),
            operation: Box::new(operation),
        })
    }
}

impl Help for Work {
    fn help(&self, _deadline: Deadline) -> bool {
        let claims = !self.claimed.swap(true, LoomOrdering::Relaxed);
        if claims {
            (self.operation)();
        }
        claims
    }
}

pub const MODELS: &[Model] = &[
    ("signal: one thread waits for it", None, one_waits),
    ("signal: two threads wait for it", Some(4), two_wait),
    (
        "signal: its command is executed meanwhile",
        Some(4),
        executed,
    ),
    ("signal: each command goes on once", None, each_goes_on),
    ("signal: a change is pending until it is made", None, made),
    (
        "waiter: one thread has the role at a time",
        Some(4),
        one_has_the_role,
    ),
];

/// A command's result, which is written before its signal is set.
struct Result {
    signal: Signal,
    bytes: UnsafeCell<u32>,
}

// SAFETY: the signal orders the accesses. Loom reports an access that is not ordered.
unsafe impl Send for Result {}
// SAFETY: as above.
unsafe impl Sync for Result {}

impl Result {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            signal: Signal::new(false, true),
            bytes: UnsafeCell::new(0),
        })
    }

    fn execute(&self) {
        // SAFETY: see above.
        self.bytes.with_mut(|bytes| unsafe { *bytes = 7 });
        assert!(self.signal.set(1, 2).is_empty());
    }

    fn read(&self) {
        // SAFETY: see above.
        self.bytes.with(|bytes| assert_eq!(unsafe { *bytes }, 7));
    }

    fn wait(&self) {
        assert!(self.signal.wait(Deadline::Never));
        self.read();
        assert_eq!(self.signal.times(), Some((1, 2)));
    }
}

fn one_waits() {
    let result = Result::new();
    let other = Arc::clone(&result);
    let setter = thread::spawn(move || other.execute());
    // A poll that succeeds must make the result visible.
    if result.signal.wait(Deadline::Now) {
        result.read();
    }
    result.wait();
    setter.join().expect("no panic");
}

fn two_wait() {
    let result = Result::new();
    let (first, second) = (Arc::clone(&result), Arc::clone(&result));
    let waiter = thread::spawn(move || first.wait());
    let setter = thread::spawn(move || second.execute());
    result.wait();
    waiter.join().expect("no panic");
    setter.join().expect("no panic");
}

/// A worker publishes the command and executes it, unless the waiting thread claims and executes it first.
fn executed() {
    let result = Result::new();
    let other = Arc::clone(&result);
    let worker = thread::spawn(move || {
        let done = Arc::clone(&other);
        let work = Work::new(move || done.execute());
        let executor = Executor::new(Arc::clone(&work) as Arc<dyn Help>);
        other.signal.expect(executor);
        work.help(Deadline::Never);
    });
    result.wait();
    worker.join().expect("no panic");
}

/// Each command that starts to wait for a signal while it is being set continues exactly once.
fn each_goes_on() {
    let signal = Arc::new(Signal::new(false, false));
    let gone_on = Arc::new(AtomicUsize::new(0));
    let (other, counter) = (Arc::clone(&signal), Arc::clone(&gone_on));
    let admit = |signal: &Signal, counter: &AtomicUsize, number: usize| {
        if let Some(token) = signal.admit(Token(Box::new(number))) {
            counter.fetch_add(token.number(), Ordering::Relaxed);
        }
    };
    let command = thread::spawn(move || admit(&other, &counter, 1));
    let (other, counter) = (Arc::clone(&signal), Arc::clone(&gone_on));
    let setter = thread::spawn(move || {
        for token in other.set(0, 0) {
            counter.fetch_add(token.number(), Ordering::Relaxed);
        }
    });
    admit(&signal, &gone_on, 10);
    command.join().expect("no panic");
    setter.join().expect("no panic");
    assert_eq!(gone_on.load(Ordering::Relaxed), 11);
}

/// A host thread that resets a signal as soon as a command has set it finds that no command is pending that sets it.
fn made() {
    let signal = Arc::new(Signal::default());
    let changes = Changes::new(None, Some(Arc::clone(&signal)), true);
    let command = thread::spawn(move || assert!(changes.make(0, 0).is_empty()));
    assert!(signal.is_expected());
    assert!(signal.wait(Deadline::Never));
    assert!(signal.is_expected());
    signal.reset();
    assert!(!signal.is_expected());
    command.join().expect("no panic");
}

fn one_has_the_role() {
    struct Role {
        waiter: Waiter,
        inside: UnsafeCell<()>,
    }
    // SAFETY: the role is exclusive. Loom reports two threads that access `inside` concurrently.
    unsafe impl Send for Role {}
    // SAFETY: as above.
    unsafe impl Sync for Role {}
    let role = Arc::new(Role {
        waiter: Waiter::default(),
        inside: UnsafeCell::new(()),
    });
    let enter = |role: &Role| role.inside.with_mut(|_| ());
    let (first, second) = (Arc::clone(&role), Arc::clone(&role));
    let holder = thread::spawn(move || first.waiter.hold(|| enter(&first)));
    let passer = thread::spawn(move || {
        let _ = second.waiter.try_hold(|| enter(&second));
    });
    role.waiter.hold(|| enter(&role));
    holder.join().expect("no panic");
    passer.join().expect("no panic");
    assert!(role.waiter.try_hold(|| ()));
}
