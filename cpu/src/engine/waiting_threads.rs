//! Whether the threads that launch native commands execute them while they wait.
//!
//! To queue commands pays only then. Where other threads wait (SYCL's host tasks, of which dpnp creates one for each operation),
//! or the launching thread cannot execute them (it polls, waits with a timeout or has a small stack), the native runtime's workers
//! are faster, as they begin at once and are awake.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many times in a row other threads have to take queued commands until none are queued any more.
const OTHERS: usize = 4;
/// How many brief commands are issued then, until commands are queued again.
const PAUSE: usize = 256;

/// The threads that take the queued commands of a native queue. An estimate only: threads may overwrite each other's values.
#[derive(Default)]
pub struct WaitingThreads {
    /// The thread that launched last, as its [`Thread`]. Threads that share the queue overwrite it.
    launcher: AtomicUsize,
    /// How many times in a row others have taken queued commands.
    others: AtomicUsize,
    /// How many more brief commands are not queued.
    pause: AtomicUsize,
}

impl WaitingThreads {
    /// This thread launches a brief command. Returns whether launching threads are expected to execute their commands.
    pub fn note_launch(&self) -> bool {
        self.launcher.store(Thread::this().0, Ordering::Relaxed);
        let pause = self.pause.load(Ordering::Relaxed);
        self.pause.store(pause.saturating_sub(1), Ordering::Relaxed);
        pause == 0
    }

    /// The thread that launched last.
    pub fn launcher(&self) -> Thread {
        Thread(self.launcher.load(Ordering::Relaxed))
    }

    /// This thread has executed queued commands. `launcher` is that of before.
    pub fn note_execution(&self, launcher: Thread) {
        if launcher == Thread::this() {
            self.others.store(0, Ordering::Relaxed);
        } else {
            self.note_other();
        }
    }

    /// Another thread than the launching one executes queued commands, or they are issued after all.
    pub fn note_other(&self) {
        let others = self.others.load(Ordering::Relaxed) + 1;
        if others >= OTHERS {
            self.pause.store(PAUSE, Ordering::Relaxed);
        }
        self.others.store(others % OTHERS, Ordering::Relaxed);
    }

    /// Ends the pause.
    #[cfg(test)]
    pub fn end_pause(&self) {
        self.pause.store(0, Ordering::Relaxed);
    }
}

/// A number that tells a thread from the others that exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Thread(usize);

impl Thread {
    fn this() -> Self {
        thread_local!(static PLACE: u8 = const { 0 });
        Self(PLACE.with(|place| ptr::from_ref(place).addr()))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn execute(threads: &WaitingThreads) {
        threads.note_execution(threads.launcher());
    }

    fn execute_beside(threads: &WaitingThreads) {
        thread::scope(|scope| scope.spawn(|| execute(threads)).join()).expect("no panic");
    }

    #[test]
    fn several_executions_in_a_row_by_others_are_a_pause() {
        let threads = WaitingThreads::default();
        for _ in 0..10 {
            assert!(threads.note_launch());
            (1..OTHERS).for_each(|_| execute_beside(&threads));
            execute(&threads);
        }
        assert!(threads.note_launch());
        (2..OTHERS).for_each(|_| execute_beside(&threads));
        threads.note_other();
        assert!(threads.note_launch());
        execute_beside(&threads);
        assert!(!threads.note_launch());
    }

    #[test]
    fn a_launch_by_the_executing_thread_does_not_make_it_the_launcher() {
        let threads = WaitingThreads::default();
        for _ in 0..OTHERS {
            assert!(threads.note_launch());
            let executes_and_launches = || {
                let launcher = threads.launcher();
                threads.note_launch();
                threads.note_execution(launcher);
            };
            thread::scope(|scope| scope.spawn(executes_and_launches).join()).expect("no panic");
        }
        assert!(!threads.note_launch());
    }

    #[test]
    fn a_pause_ends() {
        let threads = WaitingThreads::default();
        for _ in 0..3 {
            assert!(threads.note_launch());
            (0..OTHERS).for_each(|_| threads.note_other());
            for left in (1..=PAUSE).rev() {
                assert!(!threads.note_launch(), "{left} more");
            }
        }
    }
}
