//! Quiescing the OpenCL runtime for a fork, and for the exit of the process.
//!
//! The OpenCL runtime for the CPU has locks and worker threads of its own. A child that inherits it in an intermediate
//! state would wait for threads that it does not have. So a fork waits until no thread is in a call, no launch is in
//! flight, and the workers sleep. The child gets a consistent runtime without workers, in which the thread that
//! launches a kernel executes it at once.
//!
//! The fork waits for launches for ten seconds at most, or for 20 ms if its child is expected to start another program
//! ([`announcement`](crate::announcement)). Then launches in the child return an error. Workers are found by a
//! heuristic: a thread that is tied to one processor may be one. If such threads still run after ten seconds, the fork goes on,
//! and launches in the child are no errors, as no launch is in flight.
//!
//! The exit destroys the runtime's objects while threads of the program, its own workers and the engine may still call it. So
//! the exit refuses new calls before, and waits, for five seconds at most, until no thread is in a call and no launch in flight.
//! Commands that follow end with an error, and the objects are leaked.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use opencl_sys as cl;
use rustix::process::Pid;
use rustix::thread::{futex, sched_getaffinity};

use super::Error;

/// How long a fork waits for launches.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a fork waits for launches, and for workers, if its child is expected to start another program.
const SHORT_TIMEOUT: Duration = Duration::from_millis(20);
/// How long a worker executes until it sleeps, at most: it takes less than a millisecond. A thread that executes for longer is
/// one of the program's, which has tied it to a processor, too.
const WORKER_TIME: Duration = Duration::from_millis(20);
/// How long a fork waits for workers that the system does not let execute, as on a busy machine.
const WORKER_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// How long the exit waits for calls and launches.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Set while a fork blocks new calls.
const CLOSED: u32 = 1 << 31;
/// Set when the exit refuses new calls.
const EXITED: u32 = 1 << 30;

/// How many threads are in a call and how many launches are in flight, [`CLOSED`] and [`EXITED`].
static CALLS: AtomicU32 = AtomicU32::new(0);
/// Whether any call has been made, in this process or one that it was forked from.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether the runtime's workers are in a parent only.
static WITHOUT_WORKERS: AtomicBool = AtomicBool::new(false);
/// Whether a thread was in a call, or a launch in flight, when the fork in progress began.
static IS_BUSY: AtomicBool = AtomicBool::new(false);
/// Whether this process, or one that it was forked from, is the child of such a fork. That is so for good.
static FORKED_WHILE_BUSY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many nested calls the thread is in; the outermost one counts, and the others are not blocked.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Guard of a call to the runtime.
pub struct Call {
    /// Whether it is one of [`CALLS`].
    counts: bool,
}

impl Call {
    /// Begins a call, after a fork in progress.
    ///
    /// # Errors
    /// When the process exits, except within another call.
    pub fn begin() -> Result<Self, Error> {
        if DEPTH.get() > 0 {
            return Ok(Self::nested(false));
        }
        loop {
            let calls = CALLS.load(Ordering::Relaxed);
            if calls & EXITED != 0 {
                return Err(Error {
                    operation: "a process that exits",
                    code: cl::CL_OUT_OF_RESOURCES,
                });
            }
            if calls & CLOSED != 0 {
                // Returns when the word has changed and after a signal; the loop checks again in both cases.
                let _ = futex::wait(&CALLS, futex::Flags::PRIVATE, calls, None);
            } else if CALLS
                .compare_exchange_weak(calls, calls + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
        }
        USED.store(true, Ordering::Relaxed);
        Ok(Self::nested(true))
    }

    /// The call of the runtime that reports the end of a launch, which counts until then.
    pub fn at_end_of_launch() -> Self {
        Self::nested(true)
    }

    fn nested(counts: bool) -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self { counts }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if self.counts {
            CALLS.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// `Ok` when kernels can run in this process.
///
/// # Errors
/// In the child of a fork during a launch.
pub fn expect_usable() -> Result<(), Error> {
    if FORKED_WHILE_BUSY.load(Ordering::Relaxed) {
        return Err(Error {
            operation: "a process that was forked while its parent ran a kernel",
            code: cl::CL_OUT_OF_RESOURCES,
        });
    }
    Ok(())
}

/// Whether the runtime has no workers, so that the launching thread has to execute kernels.
pub fn has_no_workers() -> bool {
    WITHOUT_WORKERS.load(Ordering::Relaxed)
}

/// Counts a launch until [`Call::at_end_of_launch`]; the caller is in the [`Call`] that enqueued it.
pub fn launch_begins() {
    CALLS.fetch_add(1, Ordering::AcqRel);
}

/// Undoes [`launch_begins`] for a launch whose end will not be reported.
pub fn launch_is_lost() {
    CALLS.fetch_sub(1, Ordering::AcqRel);
}

/// Blocks new calls until [`parent`] or [`child`], and waits until the runtime is quiescent; for a short time only, if the child
/// is expected to start another program.
pub fn prepare(child_runs_kernels: bool) {
    CALLS.fetch_or(CLOSED, Ordering::AcqRel);
    let (for_launches, for_workers) = if child_runs_kernels {
        (LAUNCH_TIMEOUT, WORKER_TIMEOUT)
    } else {
        (SHORT_TIMEOUT, SHORT_TIMEOUT)
    };
    let is_used = USED.load(Ordering::Relaxed);
    let is_idle = !is_used || wait(for_launches, is_idle);
    let is_quiescent = is_idle && (!is_used || workers_fall_asleep(for_workers));
    // After the long timeout, threads that still run are the program's.
    let is_usable = is_quiescent || (is_idle && child_runs_kernels);
    IS_BUSY.store(!is_usable, Ordering::Relaxed);
}

/// Waits until the workers sleep; `false` on timeout.
fn workers_fall_asleep(most: Duration) -> bool {
    let workers = Workers::new();
    wait(most, || workers.are_asleep())
}

/// Undoes [`prepare`], in the parent.
pub fn parent() {
    CALLS.fetch_and(!CLOSED, Ordering::AcqRel);
    // Waking cannot fail: the address is valid.
    let _ = futex::wake(&CALLS, futex::Flags::PRIVATE, u32::MAX >> 1);
}

/// Undoes [`prepare`], in the child.
pub fn child() {
    let exited = CALLS.load(Ordering::Relaxed) & EXITED;
    CALLS.store(own_calls() | exited, Ordering::Relaxed);
    FORKED_WHILE_BUSY.fetch_or(IS_BUSY.load(Ordering::Relaxed), Ordering::Relaxed);
    WITHOUT_WORKERS.store(USED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Has the exit of the process refuse new calls, and wait for those in progress and for launches. Functions for the exit run in
/// the reverse order of their registration, so this is called again once the runtime has registered more of its own.
pub fn prepare_for_exit(registration: &Once) {
    registration.call_once(|| {
        // SAFETY: the function has no preconditions. Without memory for the registration, the exit does not wait.
        let _ = unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    CALLS.fetch_or(EXITED, Ordering::AcqRel);
    if USED.load(Ordering::Relaxed) {
        wait(EXIT_TIMEOUT, is_idle);
        // They may be in the callback of a launch that has ended.
        workers_fall_asleep(WORKER_TIME);
    }
}

/// Whether no other thread is in a call, and no launch in flight.
fn is_idle() -> bool {
    CALLS.load(Ordering::Acquire) & !(CLOSED | EXITED) == own_calls()
}

/// How many of the calls are this thread's.
fn own_calls() -> u32 {
    u32::from(DEPTH.get() > 0)
}

/// Polls until `is_done`; `false` on timeout.
fn wait(most: Duration, is_done: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !is_done() {
        if begin.elapsed() > most {
            return false;
        }
        sleep(POLL_INTERVAL);
    }
    true
}

/// The threads that may be the runtime's workers, which are tied to one processor each, when a fork began to wait.
struct Workers {
    /// By thread, how long it had executed.
    executed: BTreeMap<u32, Duration>,
    begin: Instant,
}

impl Workers {
    fn new() -> Self {
        let executed = tied_threads().filter_map(|thread| Some((thread, executed(thread)?)));
        Self {
            executed: executed.collect(),
            begin: Instant::now(),
        }
    }

    /// Whether all workers sleep.
    fn are_asleep(&self) -> bool {
        !tied_threads().any(|thread| is_running(thread) && self.may_be_worker(thread))
    }

    /// Whether a thread that is running has not executed for longer than a worker does.
    fn may_be_worker(&self, thread: u32) -> bool {
        let before = self.executed.get(&thread).copied().unwrap_or_default();
        let since = executed(thread).map(|now| now.saturating_sub(before));
        since.unwrap_or_else(|| self.begin.elapsed()) < WORKER_TIME
    }
}

/// The other threads of this process that are tied to one processor.
fn tied_threads() -> impl Iterator<Item = u32> {
    let own = rustix::thread::gettid();
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.flatten().filter_map(move |thread| {
        let id: i32 = thread.file_name().to_str()?.parse().ok()?;
        let thread = Pid::from_raw(id).filter(|thread| *thread != own)?;
        let is_tied = sched_getaffinity(Some(thread)).is_ok_and(|all| all.count() == 1);
        is_tied.then_some(id.unsigned_abs())
    })
}

fn is_running(thread: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| is_running_by(&stat))
}

/// How long a thread has executed; `None` where the system does not tell.
fn executed(thread: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Parses the state in `/proc/<pid>/stat`, which follows a name in parentheses that may contain any character. A thread in
/// state `D` waits for a page of its memory, or for a disk, and may own a lock. One that has ended or is stopped may stay in
/// its state without end.
fn is_running_by(stat: &str) -> bool {
    let behind = stat.rsplit_once(") ").map(|(_, behind)| behind);
    behind.is_some_and(|behind| behind.starts_with(['R', 'D']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_state_is_behind_its_name() {
        assert!(is_running_by("12 (a) S (b)) R 1 12"));
        assert!(is_running_by("12 (a)) D 1 12"));
        for state in ["S", "Z", "T", "t", "X", "I"] {
            assert!(!is_running_by(&format!("12 (a) R) {state} 1 12")));
        }
        assert!(!is_running_by(""));
    }
}
