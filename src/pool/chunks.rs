//! The chunk allocator: takes chunks from the provider, caches free ones up to a cap, and enforces the pool's limit.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::address_map;
use super::options::Options;
use super::provider::{Chunk, Provider};
use super::shard_cache::ShardCache;
use super::slab::{MAX_PADDING, Slab, SlabKind};
use crate::error::{Error, Result};
use crate::history::{self, Place};
use crate::process::Mutex;

/// The provider, and the free chunks that came from it.
#[derive(Debug)]
pub(super) struct ChunkAllocator<P> {
    provider: Arc<P>,
    options: Options,
    place: Place,
    /// The bytes that the provider has allocated, or that are being requested from it.
    reserved: AtomicUsize,
    limit: Arc<AtomicUsize>,
    shard_cache: ShardCache,
    cache: Mutex<Cache>,
}

/// The free chunks of all shards.
#[derive(Debug, Default)]
struct Cache {
    /// By size and address, with the key of each chunk in `by_age`.
    by_size: BTreeMap<(usize, NonZeroUsize), (u64, FreeChunk)>,
    by_age: BTreeMap<u64, (usize, NonZeroUsize)>,
    next_age: u64,
    bytes: usize,
    /// The bytes of the chunks that are not in this cache: in use, or in the shard cache.
    outstanding: usize,
    /// The peak of `outstanding`.
    high_water: usize,
}

/// A chunk that is not in use.
#[derive(Debug)]
pub(super) struct FreeChunk {
    pub(super) chunk: Chunk,
    /// The chunk's slab, if that has a single block: it is reused unchanged.
    pub(super) slab: Option<Arc<Slab>>,
}

impl FreeChunk {
    /// The chunk of a slab without allocated blocks.
    pub(super) fn new(slab: Arc<Slab>) -> Self {
        Self {
            chunk: slab.chunk(),
            slab: Some(slab).filter(|slab| slab.kind() == SlabKind::Large),
        }
    }

    /// Whether it has `size` to `size + slack` bytes, at a multiple of `alignment`.
    fn fits(&self, size: usize, slack: usize, alignment: usize) -> bool {
        let Chunk { base, size: own } = self.chunk;
        (size..=with_slack(size, slack)).contains(&own) && is_aligned(base.addr(), alignment)
    }
}

/// A chunk for a new slab or block.
pub(super) struct AcquiredChunk {
    pub(super) free: FreeChunk,
    /// Whether the provider was called for it.
    pub(super) is_new: bool,
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
            shard_cache: ShardCache::new(shards, options.largest_cache),
            reserved: AtomicUsize::new(0),
            limit,
            cache: Mutex::default(),
        }
    }

    /// The place of the memory, with the pool's number.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn provider(&self) -> &P {
        &self.provider
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// The bytes held from the provider, in use or not.
    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    pub(super) fn limit(&self) -> Option<usize> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|&limit| limit != usize::MAX)
    }

    /// A chunk of at least `size` bytes and a limited slack, for a thread of `shard`.
    ///
    /// # Errors
    /// [`Error::PoolLimit`], or the provider's.
    pub(super) fn acquire(
        &self,
        shard: usize,
        size: usize,
        alignment: usize,
    ) -> Result<AcquiredChunk> {
        let size = round(size);
        let cached = self.shard_cache.take(shard);
        let free = match cached {
            Some(cached) if cached.fits(size, size / 8, alignment) => Some(cached),
            cached => self.reuse(cached, size, alignment),
        };
        if let Some(free) = free {
            return Ok(AcquiredChunk {
                free,
                is_new: false,
            });
        }
        self.reserve(size)?;
        match self.provider.allocate(size, alignment) {
            Ok(base) => {
                self.cache.lock().add_outstanding(size);
                history::reserved(base.addr().get(), size, &self.place);
                let free = FreeChunk {
                    chunk: Chunk { base, size },
                    slab: None,
                };
                Ok(AcquiredChunk { free, is_new: true })
            }
            Err(error) => {
                self.reserved.fetch_sub(size, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Caches a large chunk that a thread of `shard` has freed in the shard's slot.
    pub(super) fn release_to_shard(&self, shard: usize, chunk: FreeChunk) {
        if let Some(chunk) = self.shard_cache.put(shard, chunk) {
            self.release(chunk);
        }
    }

    /// Caches a free chunk, and returns the oldest ones to the provider while the cache is over its cap.
    pub(super) fn release(&self, chunk: FreeChunk) {
        let (total, for_shards) = (self.options.largest_cache, self.shard_cache.capacity());
        let cap = total.saturating_sub(for_shards);
        let evicted = {
            let mut cache = self.cache.lock();
            if chunk.chunk.size > cap {
                cache.outstanding -= chunk.chunk.size;
                vec![chunk]
            } else {
                cache.put(chunk);
                cache.evict(|cache| cache.bytes > cap)
            }
        };
        self.return_to_provider(evicted);
    }

    /// Returns free chunks to the provider, the oldest first, until at most `keep` bytes are held.
    pub(super) fn trim(&self, keep: usize) {
        let mut held = self.reserved();
        let evicted = {
            let mut cache = self.cache.lock();
            self.shard_cache.drain().for_each(|chunk| cache.put(chunk));
            cache.evict_while(|_, next| {
                let more = held > keep;
                held = held.saturating_sub(next);
                more
            })
        };
        self.return_to_provider(evicted);
    }

    /// Must be called without holding a lock.
    fn return_to_provider(&self, evicted: impl IntoIterator<Item = FreeChunk>) {
        for FreeChunk { chunk, .. } in evicted {
            // Unregistered before the provider can return the address again.
            address_map::unregister(chunk);
            history::released(chunk.base.addr().get(), chunk.size, &self.place);
            // SAFETY: the chunk came from the provider; it is in neither cache, and not in use.
            unsafe { self.provider.free(chunk.base, chunk.size) };
            self.reserved.fetch_sub(chunk.size, Ordering::Relaxed);
        }
    }

    /// A chunk that fits from the cache, to which `cached`, the shard's own chunk, is returned first. Without one,
    /// evicts chunks so that the pool may take a new one from the provider.
    fn reuse(&self, cached: Option<FreeChunk>, size: usize, alignment: usize) -> Option<FreeChunk> {
        let evicted = {
            let mut cache = self.cache.lock();
            cached.into_iter().for_each(|chunk| cache.put(chunk));
            if let Some(chunk) = cache.take(size, size / 8, alignment) {
                return Some(chunk);
            }
            self.shard_cache.drain().for_each(|chunk| cache.put(chunk));
            if let Some(chunk) = cache.take(size, size / 8, alignment) {
                return Some(chunk);
            }
            let reserved = self.reserved();
            let peak = cache.high_water.max(cache.outstanding.saturating_add(size));
            let growth = &self.options.growth;
            let overhead = (peak / 100).saturating_mul(growth.overhead_percent);
            let allowed = peak
                .saturating_add(overhead)
                .max(growth.overhead_threshold)
                .min(self.limit.load(Ordering::Relaxed));
            let excess = reserved.saturating_add(size).saturating_sub(allowed);
            if excess > 0
                && let Some(chunk) = cache.take(size, size, alignment)
            {
                // A chunk of up to twice the size is accepted, as that costs less than returning it and allocating a new
                // one.
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
        let limit = self.limit.load(Ordering::Relaxed);
        let within = |reserved: usize| reserved.checked_add(size).filter(|&sum| sum <= limit);
        self.reserved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within)
            .map(drop)
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

    /// Removes the oldest chunks while `condition` holds.
    fn evict(&mut self, condition: impl Fn(&Self) -> bool) -> Vec<FreeChunk> {
        self.evict_while(|cache, _| condition(cache))
    }

    /// As [`evict`](Self::evict); the condition is called with the size of the next chunk.
    fn evict_while(&mut self, mut condition: impl FnMut(&Self, usize) -> bool) -> Vec<FreeChunk> {
        let mut evicted = Vec::new();
        while let Some((_, &key)) = self.by_age.first_key_value()
            && condition(self, key.0)
        {
            evicted.extend(self.remove(key));
        }
        evicted
    }
}

/// The largest chunk that may be used for `size` bytes with `slack` more.
fn with_slack(size: usize, slack: usize) -> usize {
    size.saturating_add(slack.min(MAX_PADDING / 2))
}

fn is_aligned(address: NonZeroUsize, alignment: usize) -> bool {
    alignment == 0 || address.get().is_multiple_of(alignment)
}

/// Rounds up to one of eight sizes between a power of two and the next, at least a page apart, so that requests of nearly
/// the same size can share chunks. A size that cannot be rounded is passed on, for the provider to refuse.
fn round(size: usize) -> usize {
    let step = (size.checked_next_power_of_two().unwrap_or(1) / 16).clamp(4 << 10, 64 << 20);
    size.checked_next_multiple_of(step).unwrap_or(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_to_eighths_of_a_power_of_two_within_bounds() {
        const KIB: usize = 1 << 10;
        const MIB: usize = 1 << 20;
        for (size, rounded) in [
            (1, 4 * KIB),
            (4 * KIB, 4 * KIB),
            (4 * KIB + 1, 8 * KIB),
            (60 * KIB + 1, 64 * KIB),
            (64 * KIB + 1, 72 * KIB),
            (72 * KIB + 1, 80 * KIB),
            (15 * MIB, 15 * MIB),
            (15 * MIB + 1, 16 * MIB),
            (512 * MIB + 1, 576 * MIB),
            (1024 * MIB + 1, (1024 + 64) * MIB),
            (usize::MAX, usize::MAX),
        ] {
            assert_eq!(round(size), rounded, "{size} bytes");
        }
    }
}
