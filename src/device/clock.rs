//! The clock of a device, beside the host's.

use std::time::{Duration, Instant};

use super::properties::{Device, Timer};
use crate::error::Result;

/// By how much one of two timestamps in order may seem to be before the other.
const LARGEST_SKEW: Duration = Duration::from_secs(1);

/// The clocks of the host and of a device at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) host: Instant,
    /// In ticks of the device's [`Timer`].
    pub(crate) device: u64,
}

/// Reading the clock of a GPU takes a few microseconds.
const SHORT_READ: Duration = Duration::from_micros(20);
/// How often the clocks are read at most for one comparison.
const MOST_ATTEMPTS: usize = 5;

impl Timer {
    pub(crate) fn nanoseconds(self, ticks: u64) -> u64 {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1));
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }

    /// The number of ticks in `time`.
    pub(crate) fn ticks(self, time: Duration) -> u64 {
        let ticks = time.as_nanos() * u128::from(self.frequency) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// The ticks from one timestamp to a later one, with at most one wrap-around between them.
    pub(crate) fn ticks_between(self, start: u64, end: u64) -> u64 {
        let mask = 1u64
            .checked_shl(self.valid_bits)
            .map_or(u64::MAX, |limit| limit - 1);
        end.wrapping_sub(start) & mask
    }

    /// The same, or 0 if the second timestamp is the earlier one: the clocks of engines differ a little, and so do two
    /// readings of which one is converted from the host's clock.
    pub(crate) fn ticks_after(self, start: u64, end: u64) -> u64 {
        let early = self.ticks_between(end, start);
        match early <= self.ticks(LARGEST_SKEW) {
            true => 0,
            false => self.ticks_between(start, end),
        }
    }
}

impl Device {
    /// The clocks now. The host's is read after the device's: of a few attempts, the one with the least time between them, as
    /// the thread may be preempted there.
    pub(crate) fn clocks(&self) -> Result<Clocks> {
        let attempt = || -> Result<_> {
            let before = Instant::now();
            let device = self.ticks()?;
            let host = Instant::now();
            Ok((host - before, Clocks { host, device }))
        };
        let mut best = attempt()?;
        for _ in 1..MOST_ATTEMPTS {
            if best.0 <= SHORT_READ {
                break;
            }
            let next = attempt()?;
            if next.0 < best.0 {
                best = next;
            }
        }
        Ok(best.1)
    }

    /// The value of that clock.
    fn ticks(&self) -> Result<u64> {
        let (mut host, mut ticks) = (0, 0);
        // SAFETY: the device is alive, and both outlive the call.
        unsafe {
            call!(
                self.driver().library(),
                zeDeviceGetGlobalTimestamps(self.handle(), &mut host, &mut ticks)
            )
        }?;
        Ok(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_converted_and_counters_wrap_around() {
        let timer = Timer {
            frequency: 19_200_000,
            valid_bits: 32,
        };
        assert_eq!(timer.nanoseconds(19_200_000), 1_000_000_000);
        assert_eq!(timer.ticks_between(10, 25), 15);
        assert_eq!(timer.ticks_between(0xffff_fff0, 0x10), 0x20);
        assert_eq!(timer.ticks(Duration::from_millis(500)), 9_600_000);
        let full = Timer {
            frequency: 1_000_000_000,
            valid_bits: 64,
        };
        assert_eq!(full.ticks_between(u64::MAX, 1), 2);
    }
}
