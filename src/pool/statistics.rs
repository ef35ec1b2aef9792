//! What a pool counts, at all times.
//!
//! Each shard counts for itself under the lock that it holds anyway. Only the peak needs a sum over the shards; they
//! publish their share of it when it has changed by more than [`UNPUBLISHED`] bytes, and whenever somebody asks.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use crate::process::Mutex;

/// By how many bytes a shard's part of the sum may lag behind.
pub(super) const UNPUBLISHED: i64 = 1 << 20;

/// A pool's figures. All but the peak are exact whenever no allocation is under way; the peak is exact as long as one
/// thread allocates, and within 1 MiB for every further one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes of the blocks in use, rounded up as the pool does.
    pub used_bytes: usize,
    /// Bytes that were asked for in the blocks in use.
    pub requested_bytes: usize,
    /// Blocks in use.
    pub used_count: usize,
    /// The most that `used_bytes` has been since the beginning or the last `reset_peak`.
    pub peak_bytes: usize,
    /// Bytes held from the provider: in use or not.
    pub total_bytes: usize,
    /// Bytes held from the provider that are in no block in use.
    pub free_bytes: usize,
    /// The most that `total_bytes` may be.
    pub limit: Option<usize>,
    /// Allocations so far.
    pub allocations: u64,
    /// Bytes of all allocations so far, rounded up as the pool does.
    pub allocated_bytes: u64,
    /// Allocations for which the provider was not asked.
    pub hits: u64,
    /// Allocations for which the provider was asked.
    pub misses: u64,
    /// Allocations that failed, and count nowhere else.
    pub failures: u64,
}

/// What happened in a [`Scope`](super::Scope).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of blocks allocated less those of blocks freed: what the scope leaves behind.
    pub used_bytes: i64,
    /// Blocks allocated less blocks freed.
    pub used_count: i64,
    /// The most that `used_bytes` has been meanwhile, as a pool's peak is exact or nearly so.
    pub peak_bytes: i64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes of all these allocations.
    pub allocated_bytes: u64,
    /// Allocations for which the provider was not asked.
    pub hits: u64,
    /// Allocations for which the provider was asked.
    pub misses: u64,
    /// Allocations that failed.
    pub failures: u64,
}

impl Report {
    pub(super) fn between(begin: &Statistics, end: &Statistics, peak: i64) -> Self {
        let difference = |end: usize, begin: usize| end as i64 - begin as i64;
        Self {
            used_bytes: difference(end.used_bytes, begin.used_bytes),
            used_count: difference(end.used_count, begin.used_count),
            peak_bytes: peak - begin.used_bytes as i64,
            allocations: end.allocations - begin.allocations,
            allocated_bytes: end.allocated_bytes - begin.allocated_bytes,
            hits: end.hits - begin.hits,
            misses: end.misses - begin.misses,
            failures: end.failures - begin.failures,
        }
    }
}

/// What one shard has counted. Blocks may be freed in another shard, so differences can be negative.
#[derive(Debug, Default)]
pub(super) struct Counters {
    used_bytes: i64,
    requested_bytes: i64,
    used_count: i64,
    allocations: u64,
    allocated_bytes: u64,
    misses: u64,
    failures: u64,
    /// The part of `used_bytes` that is not in the sum yet, and the most it has been since it began to be.
    pending: i64,
    pending_peak: i64,
}

impl Counters {
    pub(super) fn allocated(&mut self, block: usize, asked: usize, miss: bool, sum: &Sum) {
        self.used_bytes += block as i64;
        self.requested_bytes += asked as i64;
        self.used_count += 1;
        self.allocations += 1;
        self.allocated_bytes += block as u64;
        self.misses += u64::from(miss);
        self.pending += block as i64;
        self.pending_peak = self.pending_peak.max(self.pending);
        if self.pending > UNPUBLISHED {
            self.publish(sum);
        }
    }

    pub(super) fn freed(&mut self, block: usize, asked: usize, sum: &Sum) {
        self.used_bytes -= block as i64;
        self.requested_bytes -= asked as i64;
        self.used_count -= 1;
        self.pending -= block as i64;
        if self.pending < -UNPUBLISHED {
            self.publish(sum);
        }
    }

    pub(super) fn failed(&mut self) {
        self.failures += 1;
    }

    pub(super) fn publish(&mut self, sum: &Sum) {
        let before = sum.used.fetch_add(self.pending, Ordering::Relaxed);
        let top = before + self.pending_peak;
        if top > sum.peak.load(Ordering::Relaxed) {
            sum.peak.fetch_max(top, Ordering::Relaxed);
        }
        self.pending = 0;
        self.pending_peak = 0;
    }
}

/// The sum of what the shards have published, and its peaks.
#[derive(Debug, Default)]
pub(super) struct Sum {
    used: AtomicI64,
    /// The most since the peaks were last settled.
    peak: AtomicI64,
    peaks: Mutex<Peaks>,
}

#[derive(Debug, Default)]
struct Peaks {
    overall: i64,
    scopes: Vec<Weak<AtomicI64>>,
}

impl Sum {
    /// Tells everybody who waits for a peak of the last one, and begins the next. Returns the overall one.
    pub(super) fn settle(&self) -> i64 {
        let used = self.used.load(Ordering::Relaxed);
        let mut peaks = self.peaks.lock();
        let peak = self.peak.swap(used, Ordering::Relaxed);
        peaks.overall = peaks.overall.max(peak);
        peaks.scopes.retain(|scope| match scope.upgrade() {
            Some(scope) => {
                scope.fetch_max(peak, Ordering::Relaxed);
                true
            }
            None => false,
        });
        peaks.overall
    }

    /// Forgets the overall peak. To be called when everything is published and settled.
    pub(super) fn reset_peak(&self) {
        self.peaks.lock().overall = self.used.load(Ordering::Relaxed);
    }

    /// A peak from now on. To be called when everything is published and settled.
    pub(super) fn scope(&self) -> Arc<AtomicI64> {
        let peak = Arc::new(AtomicI64::new(self.used.load(Ordering::Relaxed)));
        self.peaks.lock().scopes.push(Arc::downgrade(&peak));
        peak
    }
}

/// Adds up what the shards have counted.
pub(super) fn total<'a>(shards: impl Iterator<Item = &'a Counters>) -> Statistics {
    let mut sum = Counters::default();
    for shard in shards {
        sum.used_bytes += shard.used_bytes;
        sum.requested_bytes += shard.requested_bytes;
        sum.used_count += shard.used_count;
        sum.allocations += shard.allocations;
        sum.allocated_bytes += shard.allocated_bytes;
        sum.misses += shard.misses;
        sum.failures += shard.failures;
    }
    let unsigned = |value: i64| usize::try_from(value).unwrap_or(0);
    Statistics {
        used_bytes: unsigned(sum.used_bytes),
        requested_bytes: unsigned(sum.requested_bytes),
        used_count: unsigned(sum.used_count),
        allocations: sum.allocations,
        allocated_bytes: sum.allocated_bytes,
        hits: sum.allocations - sum.misses,
        misses: sum.misses,
        failures: sum.failures,
        ..Statistics::default()
    }
}
