//! Host threads that wait, and take part in the work meanwhile where that is safe.

use std::hint;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::command::Executor;
use super::workers::release_retired;
use crate::clock::Deadline;

/// How often a waiting thread looks before it goes to sleep: a few microseconds.
const SPINS: u32 = 300;

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
    let mut spun = false;
    let mut helped = None;
    let mut guard = state.lock();
    loop {
        let executor = match look(&mut guard) {
            Outlook::Done => return true,
            Outlook::Executing(executor) => Some(executor),
            Outlook::Unknown => None,
        };
        if matches!(deadline, Deadline::Now) {
            return false;
        }
        if matches!(deadline, Deadline::Never)
            && let Some(executor) = &executor
            && helped != Some(executor.identity())
            && MutexGuard::unlocked(&mut guard, || executor.help())
        {
            helped = Some(executor.identity());
            spun = false;
            continue;
        }
        if !spun {
            spun = true;
            MutexGuard::unlocked(&mut guard, || spin(&is_done));
            continue;
        }
        let unhelped = executor.filter(|executor| helped != Some(executor.identity()));
        let _request = unhelped.as_ref().map(Executor::request_help);
        match deadline {
            Deadline::Now => return false,
            Deadline::Never => changed.wait(&mut guard),
            Deadline::At(moment) => {
                if changed.wait_until(&mut guard, moment).timed_out() {
                    return matches!(look(&mut guard), Outlook::Done);
                }
            }
        }
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
