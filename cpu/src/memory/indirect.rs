//! Launches that may use any allocation, as they follow pointers in memory (`zeKernelSetIndirectAccess`).
//!
//! They count in one of two rounds. A wait directs new ones to the other round, and so comes to an end however many follow.

use std::sync::atomic::{AtomicUsize, Ordering};

use zeusm_process::{Local, Mutex};

use super::pins::PinCount;

#[derive(Default)]
struct State {
    rounds: [PinCount; 2],
    /// The round of new launches, in the lowest bit.
    round: AtomicUsize,
    /// Held by the thread that waits.
    turn: Mutex<()>,
}

static STATE: Local<State> = Local::new();

/// A launch, from its submission to its completion.
#[derive(Debug)]
pub struct Indirect {
    round: &'static PinCount,
    generation: u32,
}

impl Indirect {
    /// Counts a launch.
    pub fn begin() -> Self {
        let state = STATE.get_or_default();
        let round = &state.rounds[state.round.load(Ordering::Relaxed) & 1];
        let generation = round.pin();
        Self { round, generation }
    }
}

impl Drop for Indirect {
    fn drop(&mut self) {
        self.round.unpin(self.generation);
    }
}

/// Waits until the launches are complete that were submitted before the call.
pub fn wait() {
    let state = STATE.get_or_default();
    let _turn = state.turn.lock();
    // Both rounds, as a launch may have counted in one that had just ended.
    for _ in 0..2 {
        let before = state.round.fetch_xor(1, Ordering::AcqRel);
        state.rounds[before & 1].wait_until_zero();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn a_wait_ends_however_many_launches_follow() {
        let (first, over) = (Indirect::begin(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut last = Indirect::begin();
                drop(first);
                while !over.load(Ordering::Relaxed) {
                    // There is always one.
                    last = Indirect::begin();
                }
                drop(last);
            });
            wait();
            over.store(true, Ordering::Relaxed);
        });
    }
}
