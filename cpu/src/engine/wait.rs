//! Host threads that wait, and take part in the work meanwhile where that is safe.

use std::hint;

use super::command::Executor;
use super::meeting::{Condvar, Mutex, SPINS};
use super::waiter::Request;
use super::workers::release_retired;
use crate::system::clock::Deadline;

/// What a waiting thread sees.
pub enum Outlook {
    /// What it waits for has happened.
    Done,
    /// It will happen at the end of something that is being executed.
    Executing(Executor),
    /// What has to happen first is not known, or has not begun.
    Unknown,
}

/// Waits until `look` answers [`Outlook::Done`]; `false` when the deadline passes first.
///
/// `changed` is notified, with `state` locked, whenever the answer becomes another one. `is_done` is a cheap preview of
/// the answer that takes no lock.
pub fn wait<S>(
    state: &Mutex<S>,
    changed: &Condvar,
    deadline: Deadline,
    look: impl Fn(&mut S) -> Outlook,
    is_done: impl Fn() -> bool,
) -> bool {
    release_retired();
    if matches!(deadline, Deadline::Now) {
        return is_done();
    }
    let (mut spun, mut tried) = (false, false);
    // Declared before the guard, so that it is dropped without the lock: it may own objects of the other runtime.
    let mut watched: Option<Watched> = None;
    let mut guard = state.lock();
    loop {
        let executor = match look(&mut guard) {
            Outlook::Done => return true,
            Outlook::Executing(executor) => Some(executor),
            Outlook::Unknown => None,
        };
        if let Some(executor) = executor
            && watched.as_ref().is_none_or(|known| !known.is(&executor))
        {
            drop(guard);
            watched = Some(Watched::new(executor));
            guard = state.lock();
            continue;
        }
        // Whatever is done without the lock, the next thing is to look again.
        if let Some(watched) = &mut watched
            && matches!(deadline, Deadline::Never)
            && !tried
        {
            tried = true;
            drop(guard);
            watched.help();
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
                let in_time;
                (guard, in_time) = changed.wait_until(guard, moment);
                if !in_time {
                    return is_done();
                }
            }
        }
    }
}

/// What executes the command that a thread waits for.
struct Watched {
    executor: Executor,
    /// Whether the thread has helped already; what is left then is a matter of moments.
    has_helped: bool,
    /// Whether another thread has been asked for help.
    has_asked: bool,
    request: Option<Request<'static>>,
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

    fn is(&self, executor: &Executor) -> bool {
        self.executor.identity() == executor.identity()
    }

    /// Helps once, if this thread may.
    fn help(&mut self) {
        self.has_helped = self.has_helped || self.executor.help();
    }

    /// Asks another thread for help.
    fn request_help(&mut self) {
        self.has_asked = true;
        self.request = self.executor.request_help();
    }
}

/// Looks for a few microseconds.
fn spin(is_done: impl Fn() -> bool) {
    for _ in 0..SPINS {
        hint::spin_loop();
        if is_done() {
            return;
        }
    }
}
