//! How many operations that have been submitted use an allocation.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex;

use crate::process;

/// Set while a thread waits for the count to be 0.
const WAITED: u64 = 1 << 31;
const COUNT: u64 = WAITED - 1;

/// Changes whenever a count that is waited for gets to 0; shared by all allocations, as blocking frees are rare.
static IDLE: AtomicU32 = AtomicU32::new(0);

/// The count, in the lower half; the upper half is the generation of the process that it is of. What was under way in
/// the parent of a fork is over for the child, whose count begins at 0.
#[derive(Debug, Default)]
pub struct Uses(AtomicU64);

impl Uses {
    /// One more; returns what [`leave`](Self::leave) needs.
    pub fn enter(&self) -> u32 {
        let generation = process::generation();
        let one_more = |word| {
            Some(
                if is_of(word, generation) {
                    word
                } else {
                    start(generation)
                } + 1,
            )
        };
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        generation
    }

    /// One less, unless it was entered before a fork.
    pub fn leave(&self, entered: u32) {
        if entered != process::generation() {
            return;
        }
        let before = self.0.fetch_sub(1, Ordering::AcqRel);
        if before & (WAITED | COUNT) == WAITED | 1 {
            IDLE.fetch_add(1, Ordering::Release);
            // An error is impossible: the word is there, and there is nothing else to refuse.
            let _ = futex::wake(&IDLE, futex::Flags::PRIVATE, u32::MAX >> 1);
        }
    }

    /// Waits until there are none.
    pub fn wait(&self) {
        loop {
            let seen = IDLE.load(Ordering::Acquire);
            let word = self.0.fetch_or(WAITED, Ordering::AcqRel);
            if !is_of(word, process::generation()) || word & COUNT == 0 {
                return;
            }
            // Comes back at once when the word has changed, and after a signal; both mean to look again.
            let _ = futex::wait(&IDLE, futex::Flags::PRIVATE, seen, None);
        }
    }
}

fn start(generation: u32) -> u64 {
    u64::from(generation) << 32
}

fn is_of(word: u64, generation: u32) -> bool {
    word >> 32 == u64::from(generation)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn a_wait_ends_with_the_last_use() {
        let uses = Uses::default();
        uses.wait();
        for _ in 0..200 {
            let entered = [uses.enter(), uses.enter()];
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    uses.leave(entered[0]);
                    thread::yield_now();
                    over.store(true, Ordering::SeqCst);
                    uses.leave(entered[1]);
                });
                uses.wait();
                assert!(over.load(Ordering::SeqCst));
            });
        }
    }

    #[test]
    fn a_use_from_before_a_fork_does_not_count() {
        let uses = Uses(AtomicU64::new(start(process::generation() + 7) + 3));
        uses.wait();
        let entered = uses.enter();
        uses.leave(entered + 7);
        assert_eq!(uses.0.load(Ordering::Relaxed) & COUNT, 1);
        uses.leave(entered);
        uses.wait();
    }
}
