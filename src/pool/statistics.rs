//! A pool's statistics. Each shard has counters under its own lock.

use super::peak::Level;

/// A pool's statistics. All but the peak are exact whenever no allocation is in progress. The peak is exact as
/// long as one thread uses the pool, and at most 512 KiB too low for every shard (at most 16) otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes of the blocks in use, rounded up to the blocks' sizes.
    pub used_bytes: usize,
    /// Requested bytes of the blocks in use.
    pub requested_bytes: usize,
    /// Blocks in use.
    pub used_count: usize,
    /// The peak of `used_bytes` since the pool was made, or since the last `reset_peak`.
    pub peak_bytes: usize,
    /// Bytes held from the provider, in use or not.
    pub total_bytes: usize,
    /// Bytes held from the provider that are in no block in use.
    pub free_bytes: usize,
    /// The pool's limit on `total_bytes`.
    pub limit: Option<usize>,
    /// Allocations so far.
    pub allocations: u64,
    /// Bytes of all allocations so far, rounded up to the blocks' sizes.
    pub allocated_bytes: u64,
    /// Allocations that needed no call of the provider.
    pub hits: u64,
    /// Allocations that needed a call of the provider.
    pub misses: u64,
    /// Failed allocations, which no other figure includes.
    pub failures: u64,
}

/// The changes of the statistics within a [`Scope`](super::Scope).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of allocated blocks minus bytes of freed blocks: negative when the scope freed more.
    pub used_bytes: i64,
    /// Allocated blocks minus freed blocks.
    pub used_count: i64,
    /// The peak of `used_bytes` within the scope, as exact as the pool's peak.
    pub peak_bytes: i64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes of all these allocations.
    pub allocated_bytes: u64,
    /// Allocations that needed no call of the provider.
    pub hits: u64,
    /// Allocations that needed a call of the provider.
    pub misses: u64,
    /// Failed allocations.
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

/// The counters of one shard. A block may be freed by another shard than the one that allocated it, so differences can be
/// negative.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) level: Level,
    requested_bytes: i64,
    used_count: i64,
    allocations: u64,
    allocated_bytes: u64,
    misses: u64,
    failures: u64,
}

impl Counters {
    pub(super) fn allocated(&mut self, block: usize, requested: usize, miss: bool) {
        self.level.add(block);
        self.requested_bytes += requested as i64;
        self.used_count += 1;
        self.allocations += 1;
        self.allocated_bytes += block as u64;
        self.misses += u64::from(miss);
    }

    /// The bytes of a block are no longer in use. The block itself is counted until [`ended`](Self::ended).
    pub(super) fn freed(&mut self, block: usize, requested: usize) {
        self.level.subtract(block);
        self.requested_bytes -= requested as i64;
    }

    /// The free of a block has ended: the block no longer keeps its pool alive.
    pub(super) fn ended(&mut self) {
        self.used_count -= 1;
    }

    pub(super) fn failed(&mut self) {
        self.failures += 1;
    }
}

/// Sums the shards' counters.
pub(super) fn total<'a>(shards: impl Iterator<Item = &'a Counters>) -> Statistics {
    let (mut sum, mut used) = (Counters::default(), 0);
    for shard in shards {
        used += shard.level.used;
        sum.requested_bytes += shard.requested_bytes;
        sum.used_count += shard.used_count;
        sum.allocations += shard.allocations;
        sum.allocated_bytes += shard.allocated_bytes;
        sum.misses += shard.misses;
        sum.failures += shard.failures;
    }
    let unsigned = |value: i64| usize::try_from(value).unwrap_or(0);
    Statistics {
        used_bytes: unsigned(used),
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
