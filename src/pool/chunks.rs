//! The chunk allocator: takes chunks from the provider, caches free ones up to a cap, and enforces the pool's limit.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zeusm_process::{Condvar, Mutex};

use super::address_map;
use super::options::Options;
use super::provider::{Chunk, Provider};
use super::shard_cache::ShardCache;
use super::slab::{FreeChunk, is_aligned, with_slack};
use crate::error::{Error, Result};
use crate::history::{self, Action, Place};
use crate::ongoing::Ongoing;

/// The timeout of the wait for transfers of other threads and for their calls of the provider, which may itself wait for an
/// allocation.
pub(super) const RETURN_TIMEOUT: Duration = Duration::from_secs(1);

/// The provider, and the free chunks that came from it.
#[derive(Debug)]
pub(super) struct ChunkAllocator<P> {
    pub(super) provider: Arc<P>,
    pub(super) options: Options,
    /// The place of the memory, with the pool's number.
    pub(super) place: Place,
    /// The bytes that the provider has allocated, or that are being requested from it.
    reserved: AtomicUsize,
    limit: Arc<AtomicUsize>,
    shard_cache: ShardCache,
    cache: Mutex<Cache>,
    /// Wakes the threads that wait for a call of the provider or for a transfer: one has ended.
    ended: Condvar,
}

/// The free chunks of all shards.
#[derive(Debug, Default)]
struct Cache {
    /// By size and address, with the key of each chunk in `by_age`.
    by_size: BTreeMap<(usize, NonZeroUsize), (u64, FreeChunk)>,
    by_age: BTreeMap<u64, (usize, NonZeroUsize)>,
    next_age: u64,
    bytes: usize,
    /// The bytes of the chunks that threads are returning to the provider.
    returning: usize,
    /// The bytes that have been returned to the provider so far.
    returned: u64,
    /// The bytes that threads are requesting from the provider; `reserved` includes them.
    requested: usize,
    /// Threads that move free memory between the parts of the pool, or from the provider to one: until a transfer ends, another
    /// thread does not find all of that memory.
    transfers: Ongoing,
    /// The bytes that the shard cache's slots have reserved.
    for_shards: usize,
    /// The bytes of the chunks that are in use or in the shard cache.
    outstanding: usize,
    /// The peak of `outstanding`.
    high_water: usize,
}

/// A transfer in progress, which ends with the drop.
pub(super) struct Transfer<'a, P: Provider> {
    chunks: &'a ChunkAllocator<P>,
    number: u64,
}

impl<P: Provider> Drop for Transfer<'_, P> {
    fn drop(&mut self) {
        self.chunks.cache.lock().transfers.end(self.number);
        self.chunks.ended.notify_all();
    }
}

impl<P: Provider> ChunkAllocator<P> {
    pub(super) fn new(
        provider: Arc<P>,
        options: Options,
        pool: u32,
        limit: Arc<AtomicUsize>,
        shards: usize,
    ) -> Self {
        let place = Place {
            pool,
            ..provider.place()
        };
        Self {
            provider,
            options,
            place,
            shard_cache: ShardCache::new(shards),
            reserved: AtomicUsize::new(0),
            limit,
            cache: Mutex::default(),
            ended: Condvar::default(),
        }
    }

    /// The bytes held from the provider, in use or not.
    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    pub(super) fn limit(&self) -> Option<usize> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|&limit| limit != usize::MAX)
    }

    /// The bytes held from the provider, without those that threads are returning to it.
    pub(super) fn held(&self) -> usize {
        self.held_with(&self.cache.lock())
    }

    fn held_with(&self, cache: &Cache) -> usize {
        self.reserved().saturating_sub(cache.returning)
    }

    /// Whether the limit allows a chunk for `size` bytes in a pool without others.
    pub(super) fn allows(&self, size: usize) -> bool {
        round(size) <= self.limit.load(Ordering::Relaxed)
    }

    /// The slack of a reused chunk, at most `most`. With a limit there is none: other blocks would lack it.
    fn slack(&self, most: usize) -> usize {
        if self.limit().is_some() { 0 } else { most }
    }

    /// A chunk of at least `size` bytes and a limited slack, for a thread of `shard`, and whether the provider was called for it.
    ///
    /// # Errors
    /// [`Error::PoolLimit`], or the provider's.
    pub(super) fn acquire(
        &self,
        shard: usize,
        size: usize,
        alignment: usize,
    ) -> Result<(FreeChunk, bool)> {
        let size = round(size);
        let fits = |own: &mut FreeChunk| own.fits(size, self.slack(size / 8), alignment);
        loop {
            let own = self.shard_cache.take_if(shard, fits);
            if let Some(free) = own.or_else(|| self.reuse(size, alignment)) {
                return Ok((free, false));
            }
            match self.reserve(size) {
                Err(error) if !self.wait_for_returns(size) => return Err(error),
                Err(_) => {}
                Ok(()) => break,
            }
        }
        let answer = self.provider.allocate(size, alignment);
        let mut cache = self.cache.lock();
        cache.requested -= size;
        match answer {
            Ok(_) => cache.add_outstanding(size),
            Err(_) => drop(self.reserved.fetch_sub(size, Ordering::Relaxed)),
        }
        drop(cache);
        self.ended.notify_all();
        answer.map(|base| {
            let reserved = || (base.addr().get(), size);
            history::note(Action::Reserve, reserved, &self.place, None);
            let free = FreeChunk {
                chunk: Chunk { base, size },
                slab: None,
            };
            (free, true)
        })
    }

    /// Caches a large chunk that a thread of `shard` has freed in the shard's slot.
    pub(super) fn release_to_shard(&self, shard: usize, chunk: FreeChunk) {
        let Some(chunk) = self.shard_cache.put(shard, chunk) else {
            return;
        };
        let evicted = self.cache_chunk(|cache| {
            // All slots have at most half of the cap.
            let available = (self.options.largest_cache / 2).saturating_sub(cache.for_shards);
            match self.shard_cache.replace(shard, chunk, available) {
                Ok((raise, replaced)) => {
                    cache.for_shards += raise;
                    replaced
                }
                Err(chunk) => Some(chunk),
            }
        });
        self.return_to_provider(evicted);
    }

    /// Caches a free chunk. Returns those that are to be [returned to the provider](Self::return_to_provider): the oldest,
    /// while the cache is over its cap.
    #[must_use]
    pub(super) fn release(&self, chunk: FreeChunk) -> Vec<FreeChunk> {
        self.cache_chunk(|_| Some(chunk))
    }

    /// Caches the chunk of `take`, which is called with the lock: other threads find a chunk either in its shard's slot or in
    /// the cache.
    fn cache_chunk(&self, take: impl FnOnce(&mut Cache) -> Option<FreeChunk>) -> Vec<FreeChunk> {
        let cap = self.options.largest_cache;
        let mut cache = self.cache.lock();
        match take(&mut cache) {
            Some(chunk) if chunk.chunk.size > cap => {
                cache.outstanding -= chunk.chunk.size;
                cache.returning += chunk.chunk.size;
                vec![chunk]
            }
            chunk => {
                if let Some(chunk) = chunk {
                    if chunk.chunk.size > cap.saturating_sub(cache.for_shards) {
                        cache.drain(&self.shard_cache);
                    }
                    cache.put(chunk);
                }
                cache.evict_to(cap)
            }
        }
    }

    /// Returns free chunks to the provider, the oldest first, until at most `keep` bytes are held.
    pub(super) fn trim(&self, keep: usize) {
        let evicted = {
            let mut cache = self.cache.lock();
            let mut held = self.held_with(&cache);
            cache.drain(&self.shard_cache);
            cache.evict_while(|_, next| {
                let more = held > keep;
                held = held.saturating_sub(next);
                more
            })
        };
        self.return_to_provider(evicted);
    }

    /// Returns evicted chunks to the provider. Must be called without holding a lock.
    pub(super) fn return_to_provider(&self, evicted: impl IntoIterator<Item = FreeChunk>) {
        for FreeChunk { chunk, .. } in evicted {
            // Unregistered before the provider can return the address again.
            address_map::unregister(chunk);
            let released = || (chunk.base.addr().get(), chunk.size);
            history::note(Action::Release, released, &self.place, None);
            // SAFETY: the chunk came from the provider; it is in neither cache, and not in use.
            unsafe { self.provider.free(chunk.base, chunk.size) };
            let mut cache = self.cache.lock();
            cache.returning -= chunk.size;
            cache.returned += chunk.size as u64;
            self.reserved.fetch_sub(chunk.size, Ordering::Relaxed);
            drop(cache);
            self.ended.notify_all();
        }
    }

    /// Begins a transfer of free memory. No lock of the chunk cache may be held.
    pub(super) fn begin_transfer(&self) -> Transfer<'_, P> {
        let number = self.cache.lock().transfers.begin();
        Transfer {
            chunks: self,
            number,
        }
    }

    /// Waits, with a timeout, until the transfers in progress have ended, and until as many bytes have been returned to the
    /// provider as threads are returning now.
    pub(super) fn finish_transfers(&self, timeout: Duration) {
        let cache = self.cache.lock();
        let end = cache.returned + cache.returning as u64;
        let next = cache.transfers.next();
        let is_in_progress = |cache: &mut Cache| {
            cache.transfers.has_before(next) || (cache.returning > 0 && cache.returned < end)
        };
        drop(self.ended.wait_while(cache, timeout, is_in_progress));
    }

    /// After the limit has refused `size` bytes: whether they would be within it without the bytes that are free, and those
    /// that other threads are returning to the provider or requesting from it, which may refuse. This waits for the calls of
    /// the provider that matter, with a timeout.
    fn wait_for_returns(&self, size: usize) -> bool {
        if self.limit().is_none() {
            // The sum of the bytes has overflowed, which free memory does not change.
            return false;
        }
        let exceeds = |free: usize| {
            let held = self.reserved().saturating_sub(free);
            held.saturating_add(size) > self.limit.load(Ordering::Relaxed)
        };
        let is_undecided = |cache: &mut Cache| {
            exceeds(cache.bytes) && !exceeds(cache.bytes + cache.returning + cache.requested)
        };
        let cache = self.cache.lock();
        let cache = self.ended.wait_while(cache, RETURN_TIMEOUT, is_undecided);
        !exceeds(cache.bytes)
    }

    /// A chunk that fits from the cache. Without one, evicts chunks so that the pool may take a new one from the provider.
    fn reuse(&self, size: usize, alignment: usize) -> Option<FreeChunk> {
        let evicted = {
            let mut cache = self.cache.lock();
            let slack = self.slack(size / 8);
            if let Some(chunk) = cache.take(size, slack, alignment) {
                return Some(chunk);
            }
            cache.drain(&self.shard_cache);
            if let Some(chunk) = cache.take(size, slack, alignment) {
                return Some(chunk);
            }
            let peak = cache.high_water.max(cache.outstanding.saturating_add(size));
            let growth = &self.options.growth;
            let overhead = (peak / 100).saturating_mul(growth.overhead_percent);
            let grown = self.held_with(&cache).saturating_add(size);
            let limit = self.limit.load(Ordering::Relaxed);
            let allowed = peak
                .saturating_add(overhead)
                .max(growth.overhead_threshold)
                .min(limit);
            let excess = grown.saturating_sub(allowed);
            if excess > 0
                && let Some(chunk) = cache.take(size, self.slack(size / 2), alignment)
            {
                // A chunk of up to one and a half times the size is accepted, as that costs less than returning it and
                // allocating a new one.
                return Some(chunk);
            }
            let mut freed = 0;
            cache.evict_while(|_, next| {
                let more = freed < excess;
                freed += next;
                more
            })
        };
        self.return_to_provider(evicted);
        None
    }

    fn reserve(&self, size: usize) -> Result<()> {
        let mut cache = self.cache.lock();
        let limit = self.limit.load(Ordering::Relaxed);
        let within = |reserved: usize| reserved.checked_add(size).filter(|&sum| sum <= limit);
        self.reserved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within)
            .map(|_| cache.requested += size)
            .map_err(|held| Error::PoolLimit { size, held, limit })
    }
}

impl Cache {
    fn add_outstanding(&mut self, size: usize) {
        self.outstanding += size;
        self.high_water = self.high_water.max(self.outstanding);
    }

    /// Adds a chunk that was outstanding.
    fn put(&mut self, chunk: FreeChunk) {
        let Chunk { base, size } = chunk.chunk;
        self.outstanding -= size;
        let key = (size, base.addr());
        self.by_size.insert(key, (self.next_age, chunk));
        self.by_age.insert(self.next_age, key);
        self.next_age += 1;
        self.bytes += size;
    }

    fn drain(&mut self, slots: &ShardCache) {
        slots.drain().for_each(|chunk| self.put(chunk));
        self.for_shards = 0;
    }

    fn remove(&mut self, key: (usize, NonZeroUsize)) -> Option<FreeChunk> {
        let (age, chunk) = self.by_size.remove(&key)?;
        self.by_age.remove(&age);
        self.bytes -= chunk.chunk.size;
        Some(chunk)
    }

    /// Takes the smallest chunk of `size` to `size + slack` bytes at a multiple of `alignment`.
    fn take(&mut self, size: usize, slack: usize, alignment: usize) -> Option<FreeChunk> {
        let largest = with_slack(size, slack);
        let (&key, _) = self
            .by_size
            .range((size, NonZeroUsize::MIN)..=(largest, NonZeroUsize::MAX))
            .find(|((_, address), _)| is_aligned(*address, alignment))?;
        self.add_outstanding(key.0);
        self.remove(key)
    }

    /// Removes the oldest chunks until this cache and the slots have at most `cap` bytes.
    fn evict_to(&mut self, cap: usize) -> Vec<FreeChunk> {
        self.evict_while(|cache, _| cache.bytes + cache.for_shards > cap)
    }

    /// Removes the oldest chunks while `condition`, which is called with the size of the next one, holds.
    fn evict_while(&mut self, mut condition: impl FnMut(&Self, usize) -> bool) -> Vec<FreeChunk> {
        let mut evicted = Vec::new();
        while let Some((_, &key)) = self.by_age.first_key_value()
            && condition(self, key.0)
        {
            evicted.extend(self.remove(key));
            self.returning += key.0;
        }
        evicted
    }
}

/// Rounds up to one of 32 sizes between a power of two and the next, at least a page apart, so that requests of nearly
/// the same size can share chunks. A size that cannot be rounded is passed on, for the provider to refuse.
fn round(size: usize) -> usize {
    let step = (size.checked_next_power_of_two().unwrap_or(1) / 64).clamp(4 << 10, 64 << 20);
    size.checked_next_multiple_of(step).unwrap_or(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_to_parts_of_a_power_of_two_within_bounds() {
        const KIB: usize = 1 << 10;
        const MIB: usize = 1 << 20;
        for (size, rounded) in [
            (1, 4 * KIB),
            (4 * KIB, 4 * KIB),
            (4 * KIB + 1, 8 * KIB),
            (60 * KIB + 1, 64 * KIB),
            (64 * KIB + 1, 68 * KIB),
            (128 * KIB + 1, 132 * KIB),
            (256 * KIB + 1, 264 * KIB),
            (15 * MIB, 15 * MIB),
            (15 * MIB + 1, 15 * MIB + MIB / 4),
            (512 * MIB + 1, (512 + 16) * MIB),
            (4096 * MIB + 1, (4096 + 64) * MIB),
            (usize::MAX, usize::MAX),
        ] {
            assert_eq!(round(size), rounded, "{size} bytes");
        }
    }
}
