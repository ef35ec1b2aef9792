//! Whether the threads that launch native commands wait for them.
//!
//! To queue commands pays only if the launching thread executes them while it waits. Where other threads wait (SYCL's host tasks,
//! of which dpnp creates one for each operation), or the launching thread cannot execute them (it polls, waits with a timeout or
//! has a small stack), the native runtime's workers are faster, as they begin at once and are awake.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many times in a row others have to take queued commands until none are queued any more.
const OTHERS: usize = 4;
/// How many times in a row launching threads have to wait for issued commands until commands are queued again. More than above, so
/// that threads which take turns do not lead to changes all the time.
const OWN: usize = 32;

thread_local! {
    /// Whether this thread has ever launched commands.
    static LAUNCHES: Cell<bool> = const { Cell::new(false) };
}

/// The threads that wait for the commands of a native queue. An estimate only: threads may overwrite each other's values.
#[derive(Default)]
pub struct WaitingThreads {
    /// While commands are queued, how many times in a row others have taken them.
    others: AtomicUsize,
    /// While none are queued, how many more times launching threads have to wait.
    own_left: AtomicUsize,
}

impl WaitingThreads {
    /// This thread launches commands.
    pub fn note_launch() {
        LAUNCHES.set(true);
    }

    /// This thread has executed queued commands, or waits for issued ones and could have executed them.
    pub fn note_wait(&self) {
        if !LAUNCHES.get() {
            return self.note_other();
        }
        self.others.store(0, Ordering::Relaxed);
        let left = self.own_left.load(Ordering::Relaxed);
        self.own_left
            .store(left.saturating_sub(1), Ordering::Relaxed);
    }

    /// Queued commands are issued, as no launching thread executes them.
    pub fn note_other(&self) {
        let others = self.others.load(Ordering::Relaxed) + 1;
        if others >= OTHERS || !self.are_launching() {
            self.own_left.store(OWN, Ordering::Relaxed);
            self.others.store(0, Ordering::Relaxed);
        } else {
            self.others.store(others, Ordering::Relaxed);
        }
    }

    /// Whether launching threads are expected to wait.
    pub fn are_launching(&self) -> bool {
        self.own_left.load(Ordering::Relaxed) == 0
    }
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
        WaitingThreads::note_launch();
        for _ in 0..OTHERS - 1 {
            wait_beside(&threads);
        }
        threads.note_wait();
        for _ in 0..OTHERS - 1 {
            assert!(threads.are_launching());
            wait_beside(&threads);
        }
        assert!(threads.are_launching());
        threads.note_other();
        assert!(!threads.are_launching());
    }

    #[test]
    fn many_waits_in_a_row_by_the_launching_thread_count() {
        let threads = WaitingThreads::default();
        WaitingThreads::note_launch();
        (0..OTHERS).for_each(|_| wait_beside(&threads));
        (1..OWN).for_each(|_| threads.note_wait());
        wait_beside(&threads);
        for left in (1..=OWN).rev() {
            assert!(!threads.are_launching(), "{left} more");
            threads.note_wait();
        }
        assert!(threads.are_launching());
    }
}
