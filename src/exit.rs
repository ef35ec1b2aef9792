//! The exit of the process: drivers and SYCL destroy their objects, and a thread in a call of theirs would crash.
//!
//! Threads of a library survive the end of the main program: daemon threads of Python, which are in a call without the GIL, and
//! a queue's thread for host tasks. They make their calls in sections, by [`inside`]. The exit waits until no thread is in one,
//! and a thread that enters one afterwards parks for ever.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zeusm_process::{Local, this_thread};

/// The longest wait for the sections. An operation may never end, as on a lost device.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The number of threads of this process that are in a section.
static SECTIONS: Local<AtomicUsize> = Local::new();

/// The thread that exits, or 0.
static EXITING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Where this thread is counted while it is in a section. A fork's child counts anew, without the sections of its parent.
    static COUNTED: Cell<Option<&'static AtomicUsize>> = const { Cell::new(None) };
}

/// Calls a function that calls the driver or SYCL in a thread for which the exit does not wait otherwise. The thread parks, now or
/// then, if the process exits.
///
/// ```
/// let sum = zeusm::exit::inside(|| 1 + 1); // After the exit has begun, this thread would park here.
/// assert_eq!(sum, 2);
/// ```
pub fn inside<T>(call: impl FnOnce() -> T) -> T {
    let _back = Back(set(true));
    call()
}

/// Calls a function outside of the sections that this thread is in: one that may wait for ever once the exit has begun, as
/// for Python's GIL. Afterwards the thread is in them again, or parks if the process exits.
pub fn outside<T>(call: impl FnOnce() -> T) -> T {
    let _back = Back(set(false));
    call()
}

/// Has the thread in a section again, or in none, as before a call; also when that panics.
struct Back(bool);

impl Drop for Back {
    fn drop(&mut self) {
        set(self.0);
    }
}

/// Has the calling thread in a section, or in none; returns whether it was in one. The thread parks at the begin of a section if
/// the process exits.
fn set(in_section: bool) -> bool {
    let sections = SECTIONS.get_or_default();
    let before = is_counted(sections);
    if in_section && !before {
        // Ordered with `wait`: this thread sees that the process exits, or the exit sees the section.
        sections.fetch_add(1, Ordering::SeqCst);
        let exiting = EXITING.load(Ordering::SeqCst);
        if exiting != 0 && exiting != this_thread() {
            sections.fetch_sub(1, Ordering::Release);
            park();
        }
        COUNTED.set(Some(sections));
    } else if before && !in_section {
        COUNTED.set(None);
        sections.fetch_sub(1, Ordering::Release);
    }
    before
}

/// Whether the calling thread is one of those.
fn is_counted(sections: &'static AtomicUsize) -> bool {
    COUNTED.get().is_some_and(|own| ptr::eq(own, sections))
}

fn park() -> ! {
    loop {
        thread::park();
    }
}

/// Has the exit of the process wait for the sections, with a timeout of five seconds. Functions for the exit that were
/// registered before this call, those of libraries that are loaded already among them, run after the wait.
pub fn wait_at_exit() {
    // SAFETY: the function has no preconditions, and this library is never unloaded. Without memory for the registration, the
    // exit does not wait.
    let _ = unsafe { libc::atexit(wait) };
}

extern "C" fn wait() {
    if EXITING.swap(this_thread(), Ordering::SeqCst) != 0 {
        // It was registered more than once.
        return;
    }
    let begin = Instant::now();
    // A section of this thread does not end, for instance that of a host task which exits the process.
    let in_section = || {
        let sections = SECTIONS.get();
        sections
            .is_some_and(|sections| sections.load(Ordering::SeqCst) > is_counted(sections).into())
    };
    while in_section() && begin.elapsed() < TIMEOUT {
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests;
