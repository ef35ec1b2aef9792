//! How long the work-groups of a kernel take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::system::clock;

/// The time in nanoseconds that OpenCL itself takes to execute a launch on the calling thread.
pub const OVERHEAD: u64 = 1000;

/// How many times the average a measurement has to be for an outlier. The executing thread was probably preempted meanwhile.
const OUTLIER: u64 = 4;
/// The longest time in nanoseconds of a launch that is an outlier. A longer one is taken for the kernel's own, as that should not
/// be executed by one thread again.
const LONGEST_OUTLIER: u64 = 200_000 * clock::SLOWDOWN;

/// The time that a group takes on one thread: a moving average of measurements in picoseconds; 0 if there are none. It is an
/// estimate only, since it depends on the arguments, too.
///
/// An outlier counts only after another one: otherwise one preemption would have the next launches of a small kernel handed over
/// to OpenCL's workers, which spin for milliseconds when they are woken.
#[derive(Default)]
pub struct GroupTime {
    average: AtomicU64,
    /// Whether the last measurement was an outlier.
    has_outlier: AtomicBool,
}

impl GroupTime {
    /// The time in nanoseconds that a thread needs for so many groups, if any have been measured.
    pub fn of(&self, groups: u64) -> Option<u64> {
        match self.average.load(Ordering::Relaxed) {
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
        let old = self.average.load(Ordering::Relaxed);
        let is_outlier = old > 0 && new > old.saturating_mul(OUTLIER) && time <= LONGEST_OUTLIER;
        let follows_outlier = self.has_outlier.swap(is_outlier, Ordering::Relaxed);
        if is_outlier && !follows_outlier {
            return;
        }
        let average = if old == 0 {
            new
        } else {
            old - old / 4 + new / 4
        };
        self.average.store(average.max(1), Ordering::Relaxed);
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

    #[test]
    fn one_outlier_does_not_count_and_a_slower_kernel_does() {
        let time = GroupTime::default();
        time.add_groups(1, 1000);
        for _ in 0..3 {
            time.add_groups(1, LONGEST_OUTLIER);
            time.add_groups(1, 1000);
            assert_eq!(time.of(1), Some(OVERHEAD + 1000));
        }
        time.add_groups(1, LONGEST_OUTLIER);
        time.add_groups(1, LONGEST_OUTLIER);
        assert!(time.of(1) > Some(OVERHEAD + LONGEST_OUTLIER / 4));
    }

    #[test]
    fn a_long_launch_counts_at_once() {
        let time = GroupTime::default();
        time.add_groups(1, 1000);
        time.add_groups(1, LONGEST_OUTLIER + 1);
        assert!(time.of(1) > Some(OVERHEAD + LONGEST_OUTLIER / 4));
    }
}
