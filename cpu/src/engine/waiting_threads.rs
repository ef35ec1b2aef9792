//! Which threads wait for the native commands of a queue.
//!
//! A program whose commands are waited for by other threads than those that launch them gains nothing from queued commands: the
//! other thread has to be woken anyway, and while it wakes, the native runtime's workers would have executed the command. SYCL's
//! host tasks are such threads; dpnp creates one for each operation.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many waits in a row by other threads show that the launching threads do not wait.
const OTHERS: usize = 4;

/// The threads that wait for the commands of a queue. An estimate only: threads that share a queue overwrite each other's values.
#[derive(Default)]
pub struct WaitingThreads {
    /// The thread that launched last.
    launcher: AtomicUsize,
    /// How many waits in a row were by other threads.
    by_others: AtomicUsize,
}

impl WaitingThreads {
    /// This thread launches a command.
    pub fn note_launch(&self) {
        self.launcher.store(this_thread(), Ordering::Relaxed);
    }

    /// This thread waits for a command that is not complete.
    pub fn note_wait(&self) {
        if self.launcher.load(Ordering::Relaxed) == this_thread() {
            self.by_others.store(0, Ordering::Relaxed);
        } else {
            let more = self.by_others.load(Ordering::Relaxed).saturating_add(1);
            self.by_others.store(more, Ordering::Relaxed);
        }
    }

    /// Whether the threads that wait are not those that launch.
    pub fn are_others(&self) -> bool {
        self.by_others.load(Ordering::Relaxed) >= OTHERS
    }
}

/// A number that tells this thread from the others that exist.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| ptr::from_ref(place).addr())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn wait_beside(threads: &WaitingThreads) {
        thread::scope(|scope| scope.spawn(|| threads.note_wait()).join()).expect("no panic");
    }

    #[test]
    fn several_waits_in_a_row_by_others_count() {
        let threads = WaitingThreads::default();
        threads.note_launch();
        for _ in 0..OTHERS - 1 {
            wait_beside(&threads);
            assert!(!threads.are_others());
        }
        wait_beside(&threads);
        assert!(threads.are_others());
        threads.note_launch();
        assert!(threads.are_others());
        threads.note_wait();
        assert!(!threads.are_others());
    }
}
