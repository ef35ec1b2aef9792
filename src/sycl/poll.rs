//! Waits that poll SYCL, whose own waits may hold the lock of SYCL's graph.

use std::thread;
use std::time::{Duration, Instant};

/// How long a wait spins before it sleeps between two polls: a thread that sleeps is woken some 50 us late.
const SPIN: Duration = Duration::from_micros(50);
/// The minimum and the maximum of the interval between two polls.
const INTERVALS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// The interval is the elapsed time divided by this, so a wait ends late by that fraction at most, or by the minimum.
const FRACTION: u32 = 16;

/// A wait that polls.
pub(super) struct Poll {
    started: Instant,
}

impl Poll {
    pub(super) fn start() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    /// The time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Yields the processor in a short wait, and sleeps in a long one.
    pub(super) fn pause(&self) {
        let (shortest, longest) = INTERVALS;
        let elapsed = self.elapsed();
        if elapsed < SPIN {
            thread::yield_now();
        } else {
            thread::sleep((elapsed / FRACTION).clamp(shortest, longest));
        }
    }
}
