//! The exit of the process: drivers and SYCL destroy their objects, and a thread in a call of theirs would crash.
//!
//! Threads of a library survive the end of the main program: daemon threads of Python, which are in a call without the GIL, and
//! a queue's thread for host tasks. They make their calls in [`Section`]s. The exit waits until none is in one, and a thread
//! that enters one afterwards parks for ever.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Local;

/// The longest wait for the sections. An operation may never end, as on a lost device.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The number of sections in which threads of this process are.
static SECTIONS: Local<AtomicUsize> = Local::new();

/// The thread that exits, or 0.
static EXITING: AtomicUsize = AtomicUsize::new(0);

/// Code that calls the driver or SYCL in a thread for which the exit does not wait otherwise. It ends with the drop.
///
/// ```
/// use zeusm::process::Section;
///
/// let section = Section::enter(); // After the exit has begun, this thread would park here.
/// drop(section);
/// ```
#[derive(Debug)]
pub struct Section(&'static AtomicUsize);

impl Section {
    /// Enters a section, or parks the thread if the process exits.
    #[must_use]
    pub fn enter() -> Self {
        let sections = SECTIONS.get_or_default();
        // Ordered with `wait`: this thread sees that the process exits, or the exit sees the section.
        sections.fetch_add(1, Ordering::SeqCst);
        let section = Self(sections);
        let exiting = EXITING.load(Ordering::SeqCst);
        if exiting != 0 && exiting != this_thread() {
            drop(section);
            loop {
                thread::park();
            }
        }
        section
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Has the exit of the process wait for the sections, with a timeout of five seconds. Functions for the exit that were registered
/// before this call, those of libraries that are loaded already among them, run after the wait.
pub fn wait_at_exit() {
    // SAFETY: the function has no preconditions, and this library is never unloaded. Without memory for the registration, the
    // exit does not wait.
    let _ = unsafe { libc::atexit(wait) };
}

extern "C" fn wait() {
    EXITING.store(this_thread(), Ordering::SeqCst);
    let begin = Instant::now();
    let in_section = || {
        let sections = SECTIONS.get();
        sections.is_some_and(|sections| sections.load(Ordering::SeqCst) > 0)
    };
    while in_section() && begin.elapsed() < TIMEOUT {
        thread::sleep(POLL_INTERVAL);
    }
}

/// A number of this thread: the address of a variable of its own, which is valid until the thread has ended.
fn this_thread() -> usize {
    thread_local! {
        static OWN: u8 = const { 0 };
    }
    OWN.with(|own| ptr::from_ref(own).addr())
}
