//! Host waits: a waiting thread spins briefly, helps with the execution where that is safe, and sleeps.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use super::help::{Executor, Request};
use super::primitives::{Condvar, Mutex, SPIN_LIMIT};
use super::retired::release_retired;
use crate::system::clock::Deadline;

/// How long before its deadline a wait stops sleeping: the system may wake a thread that much too late.
const WAKE_UP: Duration = Duration::from_micros(100);

/// The state of what a thread waits for.
pub enum WaitState {
    /// It has happened.
    Done,
    /// It will happen when a command that is being executed is complete.
    Executing(Executor),
    /// The command that it depends on is not known or not being executed yet.
    Unknown,
}

/// Waits until `look` returns [`WaitState::Done`]; `false` when the deadline passes first.
///
/// `changed` is notified, with `state` locked, whenever the result of `look` changes. `is_done` is a cheap check
/// without the lock.
pub fn wait<S>(
    state: &Mutex<S>,
    changed: &Condvar,
    deadline: Deadline,
    look: impl Fn(&mut S) -> WaitState,
    is_done: impl Fn() -> bool,
) -> bool {
    release_retired();
    if matches!(deadline, Deadline::Now) {
        return is_done();
    }
    let (mut spun, mut tried) = (false, false);
    // Declared before the guard, so that it is dropped without the lock: it may own native objects.
    let mut watched: Option<Watched> = None;
    let mut guard = state.lock();
    loop {
        let executor = match look(&mut guard) {
            WaitState::Done => return true,
            WaitState::Executing(executor) => Some(executor),
            WaitState::Unknown => None,
        };
        if let Some(executor) = executor
            && watched
                .as_ref()
                .is_none_or(|known| !known.executor.is(&executor))
        {
            drop(guard);
            watched = Some(Watched::new(executor));
            tried = false;
            guard = state.lock();
            continue;
        }
        // After each step without the lock, the state is checked again.
        if let Some(watched) = &mut watched
            && !tried
        {
            tried = true;
            drop(guard);
            watched.help(deadline);
            guard = state.lock();
            continue;
        }
        if !spun {
            spun = true;
            drop(guard);
            spin(&is_done);
            guard = state.lock();
            continue;
        }
        if let Some(watched) = &mut watched
            && !watched.has_helped
            && !watched.has_asked
        {
            drop(guard);
            watched.request_help();
            guard = state.lock();
            continue;
        }
        tried = false;
        match deadline {
            Deadline::Now => return is_done(),
            Deadline::Never => guard = changed.wait(guard),
            Deadline::At(moment) => {
                let before = moment.checked_sub(WAKE_UP).unwrap_or(moment);
                let in_time;
                (guard, in_time) = changed.wait_until(guard, before);
                if !in_time {
                    drop(guard);
                    return spin_until(moment, is_done);
                }
            }
        }
    }
}

/// The executor of the command that a thread waits for.
struct Watched {
    executor: Executor,
    /// Whether the thread has helped already, so that little is left to be done.
    has_helped: bool,
    /// Whether another thread has been asked for help.
    has_asked: bool,
    request: Option<Request>,
}

impl Watched {
    fn new(executor: Executor) -> Self {
        Self {
            executor,
            has_helped: false,
            has_asked: false,
            request: None,
        }
    }

    /// Helps once, if this thread may.
    fn help(&mut self, deadline: Deadline) {
        self.has_helped = self.has_helped || self.executor.help(deadline);
    }

    /// Asks another thread for help.
    fn request_help(&mut self) {
        self.has_asked = true;
        self.request = self.executor.request_help();
    }
}

/// Yields the processor to other threads until `is_done` or the deadline.
fn spin_until(deadline: Instant, is_done: impl Fn() -> bool) -> bool {
    while !is_done() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// Spins for a few microseconds.
fn spin(is_done: impl Fn() -> bool) {
    for _ in 0..SPIN_LIMIT {
        hint::spin_loop();
        if is_done() {
            return;
        }
    }
}
