//! The exit of the process: drivers and SYCL destroy their objects, and a thread in a call of theirs would crash.
//!
//! Threads of a library survive the end of the main program: daemon threads of Python, which are in a call without the GIL, and
//! a queue's thread for host tasks. They make their calls in [`Section`]s. The exit waits until none is in one, and a thread
//! that enters one afterwards parks for ever.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zeusm_process::{Local, this_thread};

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
/// use zeusm::exit::Section;
///
/// let section = Section::enter(); // After the exit has begun, this thread would park here.
/// drop(section);
/// ```
#[derive(Debug)]
pub struct Section {
    sections: &'static AtomicUsize,
    /// It ends in the thread that entered it.
    of_thread: PhantomData<*const ()>,
}

thread_local! {
    /// Its address tells the thread from others.
    static INSIDE: Cell<Inside> = const {
        Cell::new(Inside {
            sections: None,
            depth: 0,
            suspended: 0,
        })
    };
}

/// The sections that a thread is in.
#[derive(Clone, Copy)]
struct Inside {
    /// Where they are counted. A fork's child counts anew, without those that its parent was in.
    sections: Option<&'static AtomicUsize>,
    /// The number of those that are counted there, one within the other.
    depth: usize,
    /// The number of those that are not counted during a call of [`Section::outside`].
    suspended: usize,
}

impl Inside {
    /// Of the calling thread, as far as they are counted in `sections`.
    fn of(sections: &'static AtomicUsize) -> Self {
        let inside = INSIDE.get();
        if inside.sections.is_some_and(|own| ptr::eq(own, sections)) {
            return inside;
        }
        Self {
            sections: Some(sections),
            depth: 0,
            suspended: 0,
        }
    }

    /// Makes this the state of the calling thread.
    fn set(self) {
        INSIDE.set(self);
    }
}

impl Section {
    /// Enters a section, or parks the thread if the process exits.
    #[must_use]
    pub fn enter() -> Self {
        let sections = SECTIONS.get_or_default();
        // Ordered with `wait`: this thread sees that the process exits, or the exit sees the section.
        sections.fetch_add(1, Ordering::SeqCst);
        let mut inside = Inside::of(sections);
        inside.depth += 1;
        inside.set();
        let section = Self {
            sections,
            of_thread: PhantomData,
        };
        if is_another_exiting() {
            drop(section);
            park();
        }
        section
    }

    /// Calls a function outside of the sections that this thread is in: one that may wait for ever once the exit has begun, as
    /// for Python's GIL. Afterwards the thread is in them again, or parks if the process exits.
    pub fn outside<T>(call: impl FnOnce() -> T) -> T {
        let inside = INSIDE.get();
        let Some(sections) = inside.sections.filter(|_| inside.depth > 0) else {
            return call();
        };
        let _suspended = Suspended::begin(sections);
        call()
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        let mut inside = Inside::of(self.sections);
        if inside.depth == 0 && inside.suspended > 0 {
            inside.suspended -= 1;
            inside.set();
            return;
        }
        if inside.depth > 0 {
            inside.depth -= 1;
            inside.set();
        }
        self.sections.fetch_sub(1, Ordering::Release);
    }
}

/// The calling thread is in none of its sections. The drop, also when a call outside of them panics, has it in them again, or
/// parks it if the process exits.
struct Suspended {
    sections: &'static AtomicUsize,
    /// The number of sections that a call around this one has suspended.
    suspended_before: usize,
}

impl Suspended {
    /// Takes the calling thread out of its sections.
    fn begin(sections: &'static AtomicUsize) -> Self {
        let inside = Inside::of(sections);
        Inside {
            depth: 0,
            suspended: inside.suspended + inside.depth,
            ..inside
        }
        .set();
        sections.fetch_sub(inside.depth, Ordering::Release);
        Self {
            sections,
            suspended_before: inside.suspended,
        }
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if is_another_exiting() {
            park();
        }
        let inside = Inside::of(self.sections);
        // Fewer than before if the call has ended some of them; none in a fork's child that counts anew.
        let resumed = inside.suspended.saturating_sub(self.suspended_before);
        if resumed == 0 {
            return;
        }
        Inside {
            depth: inside.depth + resumed,
            suspended: inside.suspended - resumed,
            ..inside
        }
        .set();
        // Ordered with `wait`, as in `enter`.
        self.sections.fetch_add(resumed, Ordering::SeqCst);
        if is_another_exiting() {
            self.sections.fetch_sub(resumed, Ordering::Release);
            park();
        }
    }
}

/// Whether another thread than this one exits the process.
fn is_another_exiting() -> bool {
    let exiting = EXITING.load(Ordering::SeqCst);
    exiting != 0 && exiting != this_thread()
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
            .is_some_and(|sections| sections.load(Ordering::SeqCst) > Inside::of(sections).depth)
    };
    while in_section() && begin.elapsed() < TIMEOUT {
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests;
