//! How long the work-groups of a kernel take.

use std::sync::atomic::{AtomicU64, Ordering};

/// The time in nanoseconds that OpenCL itself takes to execute a launch on the calling thread.
pub const OVERHEAD: u64 = 1000;

/// The time that a group takes on one thread: a moving average of measurements in picoseconds; 0 if there are none. It is an
/// estimate only, since it depends on the arguments, too.
#[derive(Default)]
pub struct GroupTime(AtomicU64);

impl GroupTime {
    /// The time in nanoseconds that a thread needs for so many groups, if any have been measured.
    pub fn of(&self, groups: u64) -> Option<u64> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            time => Some(OVERHEAD + time.saturating_mul(groups) / 1000),
        }
    }

    /// Notes that a thread has executed a launch of so many groups in so many nanoseconds.
    pub fn add(&self, groups: u64, time: u64) {
        self.add_groups(groups, time.saturating_sub(OVERHEAD));
    }

    /// Notes that so many groups have taken so many nanoseconds, without what OpenCL takes for a launch. Measurements of several
    /// threads at once may be lost.
    pub fn add_groups(&self, groups: u64, time: u64) {
        let new = time.saturating_mul(1000) / groups.max(1);
        let new = match self.0.load(Ordering::Relaxed) {
            0 => new,
            old => old - old / 4 + new / 4,
        };
        self.0.store(new.max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_measurements() {
        let time = GroupTime::default();
        assert_eq!(time.of(1), None);
        time.add(10, 1000 + 5000);
        assert_eq!(time.of(1), Some(1000 + 500));
        assert_eq!(time.of(100), Some(1000 + 50_000));
        for _ in 0..40 {
            time.add_groups(2, 20);
        }
        assert!((1009..1012).contains(&time.of(1).unwrap_or(0)));
        time.add(1, 0);
        assert!(time.of(1).is_some());
    }
}
