//! The time by `CLOCK_MONOTONIC`.

use rustix::time::{ClockId, clock_gettime};

/// The current reading in nanoseconds.
#[must_use]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
