//! The peak of a pool's bytes in use, measured without state that the shards share.
//!
//! Each shard has a share of the peak, and the shares sum up to no more than the peak: as long as every shard's bytes in use
//! are within its share, the pool's are no new peak. A shard may exceed its share by [`UNCHECKED`] bytes. An allocation that
//! exceeds more is counted with all shards locked, and the peak is measured and divided anew.
//!
//! While one shard had its most bytes in use since the last measurement, the others had at least their least. The sum is a
//! lower bound of the peak since then, and exact if no other shard has changed.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

/// The bytes by which a shard may exceed its share. The peak is exact as long as one shard is used; of several, whichever
/// threads allocate and free, it is too low by at most this for each.
const UNCHECKED: i64 = 512 << 10;

/// One shard's bytes in use. Blocks that another shard allocated may be freed here, so they can be negative.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) used: i64,
    /// The most and the least bytes in use since the last measurement.
    high: i64,
    low: i64,
    share: i64,
}

impl Level {
    /// Whether the peak must be measured when `bytes` are added.
    pub(super) fn exceeds_with(&self, bytes: usize) -> bool {
        self.used + bytes as i64 > self.share + UNCHECKED
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.used += bytes as i64;
        self.high = self.high.max(self.used);
    }

    pub(super) fn subtract(&mut self, bytes: usize) {
        self.used -= bytes as i64;
        self.low = self.low.min(self.used);
    }
}

/// The peak of a pool since a time, and those of its scopes.
#[derive(Debug, Default)]
pub(super) struct Peaks {
    /// The peak since the last [`reset`](Self::reset) or the start of the last [`scope`](Self::scope). It is in neither of the
    /// others before [`settle`](Self::settle).
    current: i64,
    overall: i64,
    scopes: Vec<Weak<AtomicI64>>,
}

impl Peaks {
    /// Measures the peak, and gives each shard a share of it. All shards are locked.
    pub(super) fn measure<'a>(&mut self, levels: impl Iterator<Item = &'a mut Level>) {
        let mut levels: Vec<_> = levels.collect();
        let used: i64 = levels.iter().map(|level| level.used).sum();
        let low: i64 = levels.iter().map(|level| level.low).sum();
        let reached = levels.iter().map(|level| low - level.low + level.high);
        self.current = reached.fold(self.current.max(used), i64::max);
        // The rest is for the shards that have had more bytes in use, in proportion.
        let spare = i128::from(self.current - used);
        let needs: i64 = levels.iter().map(|level| level.high - level.used).sum();
        let count = levels.len() as i128;
        for level in &mut levels {
            let need = i128::from(level.high - level.used);
            let share = match needs {
                0 => spare / count,
                _ => spare * need / i128::from(needs),
            };
            level.share = level.used + share as i64;
            (level.high, level.low) = (level.used, level.used);
        }
    }

    /// Adds the measured peak to the overall one and to the scopes'. Returns the overall peak.
    pub(super) fn settle(&mut self) -> i64 {
        let peak = self.current;
        self.overall = self.overall.max(peak);
        self.scopes.retain(|scope| match scope.upgrade() {
            Some(scope) => {
                scope.fetch_max(peak, Ordering::Relaxed);
                true
            }
            None => false,
        });
        self.overall
    }

    /// Resets the overall peak to `used` bytes. The peak must be settled, and the shards be measured afterwards.
    pub(super) fn reset(&mut self, used: i64) {
        self.overall = used;
        self.current = used;
    }

    /// A scope's peak, which starts at `used` bytes. As for [`reset`](Self::reset).
    pub(super) fn scope(&mut self, used: i64) -> Arc<AtomicI64> {
        self.current = used;
        let peak = Arc::new(AtomicI64::new(used));
        self.scopes.push(Arc::downgrade(&peak));
        peak
    }
}

#[cfg(test)]
mod tests;
