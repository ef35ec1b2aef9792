//! Pin counts: how many submitted commands use an allocation.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use zeusm_process::generation;

use crate::system::futex;

/// Set while a thread waits for the count to be 0.
const WAITED: u64 = 1 << 31;
const COUNT: u64 = WAITED - 1;

/// Changes whenever a count with a waiting thread drops to 0. All allocations share it, as blocking frees are rare.
static IDLE: AtomicU32 = AtomicU32::new(0);

/// The count in the lower half, the generation of its process in the upper half. Commands in flight in the parent of a
/// fork do not count in the child, whose count starts at 0.
#[derive(Debug, Default)]
pub struct PinCount(AtomicU64);

impl PinCount {
    /// Increments the count and returns the generation for [`unpin`](Self::unpin).
    pub fn pin(&self) -> u32 {
        let generation = generation();
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

    /// Decrements the count, unless the pin is from before a fork.
    pub fn unpin(&self, generation: u32) {
        if generation != zeusm_process::generation() {
            return;
        }
        let before = self.0.fetch_sub(1, Ordering::AcqRel);
        if before & (WAITED | COUNT) == WAITED | 1 {
            IDLE.fetch_add(1, Ordering::Release);
            futex::wake_all(&IDLE);
        }
    }

    /// Waits until the count is 0.
    pub fn wait_until_zero(&self) {
        loop {
            let seen = IDLE.load(Ordering::Acquire);
            let word = self.0.fetch_or(WAITED, Ordering::AcqRel);
            if !is_of(word, generation()) || word & COUNT == 0 {
                return;
            }
            futex::wait(&IDLE, seen);
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
mod tests;
