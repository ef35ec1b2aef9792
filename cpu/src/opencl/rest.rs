//! OpenCL's runtime at rest, which it must be when the process forks.
//!
//! A runtime for the CPU has locks and worker threads of its own. A child that inherits it in the middle of something
//! waits for threads that it does not have. So a fork waits until no thread is in a call, no launch is under way, and
//! the workers sleep. The child gets a runtime that is whole and has no workers: there, the thread that launches a
//! kernel runs it, at once.
//!
//! A launch that takes longer than ten seconds is not waited for. Then the child has no kernels, and its calls say so.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use opencl_sys as cl;
use opencl_sys::cl_event;
use rustix::process::Pid;
use rustix::thread::{futex, sched_getaffinity};

use super::{Error, Runtime};
use crate::process::PerProcess;
use crate::process::sync::Mutex;

/// How long a fork waits for launches.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it then waits for workers to fall asleep, which takes them less than a millisecond.
const WORKERS: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_micros(50);

/// Set while a fork keeps calls from beginning.
const CLOSED: u32 = 1 << 31;

/// How many threads are in a call, and [`CLOSED`].
static CALLS: AtomicU32 = AtomicU32::new(0);
/// Whether any call has been made, in this process or one that it was forked from.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether the runtime's workers stayed behind in a parent.
static ORPHANED: AtomicBool = AtomicBool::new(false);
/// Whether the process forked while the runtime was not at rest.
static LOST: AtomicBool = AtomicBool::new(false);

/// The launches whose events live.
static LAUNCHES: PerProcess<Mutex<BTreeMap<usize, &'static Runtime>>> = PerProcess::new();

thread_local! {
    /// How many calls the thread is in: those within a call are let in whatever happens.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A thread's stay in the runtime.
pub struct Call(());

impl Call {
    /// Begins one, after a fork that is under way.
    pub fn begin() -> Self {
        if DEPTH.get() > 0 {
            return Self::from_within();
        }
        loop {
            let calls = CALLS.load(Ordering::Relaxed);
            if calls & CLOSED != 0 {
                // Comes back when the word has changed, or after a signal; both mean to look again.
                let _ = futex::wait(&CALLS, futex::Flags::PRIVATE, calls, None);
            } else if CALLS
                .compare_exchange_weak(calls, calls + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
        }
        USED.store(true, Ordering::Relaxed);
        DEPTH.set(1);
        Self(())
    }

    /// Begins one on a thread of the runtime's, or within another.
    pub fn from_within() -> Self {
        CALLS.fetch_add(1, Ordering::AcqRel);
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        CALLS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// `Ok` when kernels run in this process.
///
/// # Errors
/// In a child of a fork that came in the middle of a launch.
pub fn expect_whole() -> Result<(), Error> {
    if LOST.load(Ordering::Relaxed) {
        return Err(Error {
            operation: "a process that was forked while its parent ran a kernel",
            code: cl::CL_OUT_OF_RESOURCES,
        });
    }
    Ok(())
}

/// Whether the runtime has no workers, so that who launches a kernel has to run it.
pub fn has_no_workers() -> bool {
    ORPHANED.load(Ordering::Relaxed)
}

/// Notes a launch.
pub fn note(event: cl_event, runtime: &'static Runtime) {
    LAUNCHES.get().lock().insert(event as usize, runtime);
}

/// Forgets a launch, whose event is about to be released.
pub fn forget(event: cl_event) {
    LAUNCHES.get().lock().remove(&(event as usize));
}

/// Lets no call begin until [`release`] or [`inherit`], and waits until the runtime is at rest.
pub fn hold() {
    CALLS.fetch_or(CLOSED, Ordering::AcqRel);
    let calls = CLOSED | DEPTH.get();
    let is_done = || CALLS.load(Ordering::Acquire) == calls && !is_launching();
    let done = !USED.load(Ordering::Relaxed)
        || wait(PATIENCE, is_done) && {
            wait(WORKERS, || !workers_are_awake());
            true
        };
    LOST.store(!done, Ordering::Relaxed);
}

/// Ends what [`hold`] began, in the parent.
pub fn release() {
    LOST.store(false, Ordering::Relaxed);
    CALLS.fetch_and(!CLOSED, Ordering::AcqRel);
    // An error is impossible: the word is there, and there is nothing else to refuse.
    let _ = futex::wake(&CALLS, futex::Flags::PRIVATE, u32::MAX >> 1);
}

/// Ends what [`hold`] began, in the child.
pub fn inherit() {
    CALLS.store(DEPTH.get(), Ordering::Relaxed);
    ORPHANED.store(USED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Looks again and again until `is_done`; `false` when that takes longer than `most`.
fn wait(most: Duration, is_done: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !is_done() {
        if begin.elapsed() > most {
            return false;
        }
        sleep(PAUSE);
    }
    true
}

/// Whether a launch is under way.
fn is_launching() -> bool {
    let launches = LAUNCHES.get().lock();
    launches.iter().any(|(event, runtime)| {
        let mut status: cl::cl_int = cl::CL_COMPLETE;
        // SAFETY: an event is forgotten before it is released; the value is one cl_int.
        unsafe {
            (runtime.api.clGetEventInfo)(
                *event as cl_event,
                cl::CL_EVENT_COMMAND_EXECUTION_STATUS,
                size_of_val(&status),
                (&raw mut status).cast(),
                std::ptr::null_mut(),
            )
        };
        status > cl::CL_COMPLETE
    })
}

/// Whether a thread that may be a worker of the runtime is not asleep. Its workers are tied to one processor each; a
/// thread of the program that is so too may be taken for one, which costs a fork [`WORKERS`] at most.
fn workers_are_awake() -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return false;
    };
    let own = rustix::thread::gettid();
    threads.flatten().any(|thread| {
        let id = thread.file_name().to_str().and_then(|id| id.parse().ok());
        let Some(id) = id.and_then(Pid::from_raw).filter(|id| *id != own) else {
            return false;
        };
        let is_tied = sched_getaffinity(Some(id)).is_ok_and(|processors| processors.count() == 1);
        is_tied
            && fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| !is_asleep(&stat))
    })
}

/// The state in `/proc/<pid>/stat`, behind a name in parentheses that may hold any.
fn is_asleep(stat: &str) -> bool {
    let behind = stat.rsplit_once(") ").map(|(_, behind)| behind);
    behind.is_some_and(|behind| behind.starts_with('S'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_state_is_behind_its_name() {
        assert!(is_asleep("12 (a) R (b)) S 1 12"));
        assert!(!is_asleep("12 (a) S) R 1 12"));
        assert!(!is_asleep(""));
    }
}
