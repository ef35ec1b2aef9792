//! The runtime's one clock: nanoseconds of the system's monotonic clock, for host and device alike.
//!
//! Host, device and kernel timestamps are readings of the same clock, so they may be compared directly.

use std::time::{Duration, Instant};

pub use super::platform::time::now;

/// Clock ticks per second.
pub const FREQUENCY: u64 = 1_000_000_000;
/// Length of a tick in nanoseconds.
pub const RESOLUTION: u64 = 1;
/// Bits of a reading that can be set. Not 64: callers compute `(1 << bits) - 1`, and 2^63 ns are 292 years.
pub const VALID_BITS: u32 = 63;

/// The deadline of a host call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Do not wait.
    Now,
    /// Wait until this moment.
    At(Instant),
    /// Wait without limit.
    Never,
}

impl Deadline {
    /// From a timeout in nanoseconds: 0 does not wait, `u64::MAX` waits without limit.
    #[must_use]
    pub fn after(timeout: u64) -> Self {
        match timeout {
            0 => Self::Now,
            u64::MAX => Self::Never,
            nanoseconds => Instant::now()
                .checked_add(Duration::from_nanos(nanoseconds))
                .map_or(Self::Never, Self::At),
        }
    }

    /// The moment that is `margin` before this one; `None` without limit.
    #[must_use]
    pub fn less(self, margin: Duration) -> Option<Instant> {
        match self {
            Self::Now => Some(Instant::now()),
            Self::At(moment) => Some(moment.checked_sub(margin).unwrap_or(moment)),
            Self::Never => None,
        }
    }

    /// This one, or the end of `interval` from now on if that is earlier.
    #[must_use]
    pub fn within(self, interval: Duration) -> Self {
        let end = Instant::now() + interval;
        match self {
            Self::At(moment) if moment <= end => self,
            Self::Now => self,
            Self::At(_) | Self::Never => Self::At(end),
        }
    }
}
