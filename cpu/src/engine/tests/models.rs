//! Models of the engine's signals, the host threads that wait for them, and the role of the thread that waits in the native
//! runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeusm_process::tests::loom::cell::UnsafeCell;
use zeusm_process::tests::loom::sync::atomic::{AtomicBool, Ordering as LoomOrdering};
use zeusm_process::tests::loom::thread;
use zeusm_process::tests::model as run;

use crate::engine::native::Waiter;
use crate::engine::order::retired::release_retired;
use crate::engine::order::{Advance, Changes, Executor, Help, Priority, QueueNumber, Signal};
use crate::system::clock::Deadline;

/// A released command, which counts that it goes on.
struct Token {
    number: usize,
    gone_on: Arc<AtomicUsize>,
}

impl Advance for Token {
    fn priority(&self) -> Priority {
        Priority::Normal
    }

    fn chain(&mut self, _queue: QueueNumber) -> bool {
        false
    }

    fn advance(self: Box<Self>) {
        self.gone_on.fetch_add(self.number, Ordering::Relaxed);
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

/// Runs a model, whose threads find the list of retired objects made.
fn model(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    run(name, preemptions, move || {
        release_retired();
        model();
    });
}

#[test]
fn signal_one_thread_waits_for_it() {
    model("signal: one thread waits for it", None, one_waits);
}

#[test]
fn signal_two_threads_wait_for_it() {
    model("signal: two threads wait for it", Some(4), two_wait);
}

#[test]
fn signal_its_command_is_executed_meanwhile() {
    model(
        "signal: its command is executed meanwhile",
        Some(4),
        executed,
    );
}

#[test]
fn signal_each_command_goes_on_once() {
    model("signal: each command goes on once", None, each_goes_on);
}

#[test]
fn signal_a_change_is_pending_until_it_is_made() {
    model("signal: a change is pending until it is made", None, made);
}

#[test]
fn waiter_one_thread_has_the_role_at_a_time() {
    model(
        "waiter: one thread has the role at a time",
        Some(4),
        one_has_the_role,
    );
}

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
        let executor = Executor::Shared(Arc::clone(&work) as Arc<dyn Help>);
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
    let admit = |number| {
        let (signal, gone_on) = (Arc::clone(&signal), Arc::clone(&gone_on));
        move || {
            if let Some(token) = signal.admit(Box::new(Token { number, gone_on })) {
                token.advance();
            }
        }
    };
    let command = thread::spawn(admit(1));
    let other = Arc::clone(&signal);
    let setter = thread::spawn(move || other.set(0, 0).into_iter().for_each(Advance::advance));
    admit(10)();
    command.join().expect("no panic");
    setter.join().expect("no panic");
    assert_eq!(gone_on.load(Ordering::Relaxed), 11);
}

/// A host thread that resets a signal as soon as a command has set it finds that no command is pending that sets it.
fn made() {
    let signal = Arc::new(Signal::default());
    let mut changes = Changes::new(None, Some(Arc::clone(&signal)), true, false);
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
    let others = [first, second].map(|other| {
        thread::spawn(move || {
            let _ = other.waiter.try_hold(|| enter(&other));
        })
    });
    let _ = role.waiter.try_hold(|| enter(&role));
    others.map(|other| other.join().expect("no panic"));
    assert!(role.waiter.try_hold(|| ()));
}
