//! Chunks: taken from the provider, kept while unused up to a cap, counted against a limit.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::nearby::Nearby;
use super::options::Options;
use super::provider::{Chunk, Provider};
use super::ranges;
use super::slab::{LARGEST_SPARE, Slab, Use};
use crate::error::{Error, Result};
use crate::process::Mutex;

/// The provider, and the chunks that came from it.
#[derive(Debug)]
pub(super) struct Coarse<P> {
    provider: Arc<P>,
    options: Options,
    /// The bytes that the provider has given or is being asked for.
    reserved: AtomicUsize,
    limit: Arc<AtomicUsize>,
    nearby: Nearby,
    cache: Mutex<Cache>,
}

/// The unused chunks.
#[derive(Debug, Default)]
struct Cache {
    /// By size and address, with the number under which `by_age` has it.
    by_size: BTreeMap<(usize, NonZeroUsize), (u64, Unused)>,
    by_age: BTreeMap<u64, (usize, NonZeroUsize)>,
    next: u64,
    bytes: usize,
    /// The bytes of chunks that are not here, near a shard or in use, and the most they have been.
    in_service: usize,
    high_water: usize,
}

/// A chunk that nobody uses.
#[derive(Debug)]
pub(super) struct Unused {
    pub(super) chunk: Chunk,
    /// What it was, when that was a single block and can be so again as it is.
    pub(super) slab: Option<Arc<Slab>>,
}

impl Unused {
    /// What was `slab`.
    pub(super) fn new(slab: Arc<Slab>) -> Self {
        Self {
            chunk: slab.chunk(),
            slab: Some(slab).filter(|slab| slab.purpose() == Use::Large),
        }
    }

    /// Whether it is of `size` to `size + spare` bytes, at a multiple of `alignment`.
    fn fits(&self, size: usize, spare: usize, alignment: usize) -> bool {
        let Chunk { base, size: own } = self.chunk;
        (size..=most(size, spare)).contains(&own) && is_aligned(base.addr(), alignment)
    }
}

/// A chunk, and whether the provider was asked for it.
pub(super) struct Acquired {
    pub(super) unused: Unused,
    pub(super) new: bool,
}

impl<P: Provider> Coarse<P> {
    pub(super) fn new(
        provider: Arc<P>,
        options: Options,
        limit: Arc<AtomicUsize>,
        shards: usize,
    ) -> Self {
        Self {
            provider,
            options,
            nearby: Nearby::new(shards, options.largest_cache),
            reserved: AtomicUsize::new(0),
            limit,
            cache: Mutex::default(),
        }
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

    /// A chunk of at least `size` bytes, not much larger, for a thread of `shard`.
    ///
    /// # Errors
    /// [`Error::PoolLimit`], or the provider's.
    pub(super) fn acquire(&self, shard: usize, size: usize, alignment: usize) -> Result<Acquired> {
        let size = round(size);
        let near = self.nearby.take(shard);
        let unused = match near {
            Some(near) if near.fits(size, size / 8, alignment) => Some(near),
            near => self.reuse(near, size, alignment),
        };
        if let Some(unused) = unused {
            return Ok(Acquired { unused, new: false });
        }
        self.reserve(size)?;
        match self.provider.allocate(size, alignment) {
            Ok(base) => {
                self.cache.lock().serve(size);
                let unused = Unused {
                    chunk: Chunk { base, size },
                    slab: None,
                };
                Ok(Acquired { unused, new: true })
            }
            Err(error) => {
                self.reserved.fetch_sub(size, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Keeps a large chunk that a thread of `shard` has freed.
    pub(super) fn release_near(&self, shard: usize, unused: Unused) {
        if let Some(unused) = self.nearby.put(shard, unused) {
            self.release(unused);
        }
    }

    /// Keeps a chunk that nobody uses, and gives back to the provider what there is too much of.
    pub(super) fn release(&self, unused: Unused) {
        let (all, nearby) = (self.options.largest_cache, self.nearby.capacity());
        let most = all.saturating_sub(nearby);
        let evicted = {
            let mut cache = self.cache.lock();
            if unused.chunk.size > most {
                cache.in_service -= unused.chunk.size;
                vec![unused]
            } else {
                cache.put(unused);
                cache.evict(|cache| cache.bytes > most)
            }
        };
        self.give_back(evicted);
    }

    /// Gives unused chunks back, the oldest first, until at most `keep` bytes are held.
    pub(super) fn trim(&self, keep: usize) {
        let mut left = self.reserved();
        let evicted = {
            let mut cache = self.cache.lock();
            self.nearby.drain().for_each(|near| cache.put(near));
            cache.evict_while(|_, next| {
                let more = left > keep;
                left = left.saturating_sub(next);
                more
            })
        };
        self.give_back(evicted);
    }

    /// Gives chunks back to the provider. No lock is held.
    fn give_back(&self, evicted: impl IntoIterator<Item = Unused>) {
        for Unused { chunk, .. } in evicted {
            // Before the provider can give the address to somebody else.
            ranges::forget(chunk);
            // SAFETY: the chunk came from the provider, and is in neither the cache nor service.
            unsafe { self.provider.free(chunk.base, chunk.size) };
            self.reserved.fetch_sub(chunk.size, Ordering::Relaxed);
        }
    }

    /// A chunk of the cache, which gets the one that was `near`; where there is none that fits, makes room for a new
    /// one.
    fn reuse(&self, near: Option<Unused>, size: usize, alignment: usize) -> Option<Unused> {
        let evicted = {
            let mut cache = self.cache.lock();
            near.into_iter().for_each(|near| cache.put(near));
            if let Some(unused) = cache.take(size, size / 8, alignment) {
                return Some(unused);
            }
            self.nearby.drain().for_each(|near| cache.put(near));
            if let Some(unused) = cache.take(size, size / 8, alignment) {
                return Some(unused);
            }
            let reserved = self.reserved();
            let most = cache.high_water.max(cache.in_service.saturating_add(size));
            let growth = &self.options.growth;
            let overhead = (most / 100).saturating_mul(growth.overhead_percent);
            let allowed = most
                .saturating_add(overhead)
                .max(growth.unchecked)
                .min(self.limit.load(Ordering::Relaxed));
            let excess = reserved.saturating_add(size).saturating_sub(allowed);
            if excess > 0
                && let Some(unused) = cache.take(size, size, alignment)
            {
                // Too large, but there for the taking.
                return Some(unused);
            }
            let mut freed = 0;
            cache.evict_while(|_, next| {
                let more = freed < excess;
                freed += next;
                more
            })
        };
        self.give_back(evicted);
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
    /// `size` bytes more are in service.
    fn serve(&mut self, size: usize) {
        self.in_service += size;
        self.high_water = self.high_water.max(self.in_service);
    }

    /// Has a chunk that was in service.
    fn put(&mut self, unused: Unused) {
        let Chunk { base, size } = unused.chunk;
        self.in_service -= size;
        let key = (size, base.addr());
        self.by_size.insert(key, (self.next, unused));
        self.by_age.insert(self.next, key);
        self.next += 1;
        self.bytes += size;
    }

    fn remove(&mut self, key: (usize, NonZeroUsize)) -> Option<Unused> {
        let (age, unused) = self.by_size.remove(&key)?;
        self.by_age.remove(&age);
        self.bytes -= unused.chunk.size;
        Some(unused)
    }

    /// The smallest chunk of `size` to `size + spare` bytes at a multiple of `alignment`.
    fn take(&mut self, size: usize, spare: usize, alignment: usize) -> Option<Unused> {
        let (&key, _) = self
            .by_size
            .range((size, NonZeroUsize::MIN)..=(most(size, spare), NonZeroUsize::MAX))
            .find(|((_, address), _)| is_aligned(*address, alignment))?;
        self.serve(key.0);
        self.remove(key)
    }

    /// Takes out the oldest chunks while there is a reason to.
    fn evict(&mut self, reason: impl Fn(&Self) -> bool) -> Vec<Unused> {
        self.evict_while(|cache, _| reason(cache))
    }

    /// As [`evict`](Self::evict); the reason is told the size of the chunk that would be next.
    fn evict_while(&mut self, mut reason: impl FnMut(&Self, usize) -> bool) -> Vec<Unused> {
        let mut evicted = Vec::new();
        while let Some((_, &key)) = self.by_age.first_key_value()
            && reason(self, key.0)
        {
            evicted.extend(self.remove(key));
        }
        evicted
    }
}

/// The largest chunk that serves for `size` bytes when `spare` of them may be.
fn most(size: usize, spare: usize) -> usize {
    size.saturating_add(spare.min(LARGEST_SPARE / 2))
}

fn is_aligned(address: NonZeroUsize, alignment: usize) -> bool {
    alignment == 0 || address.get().is_multiple_of(alignment)
}

/// Rounds up so that sizes which are nearly the same can share chunks: eight sizes between a power of two and the
/// next, at least a page apart. What cannot be rounded is the provider's to refuse.
fn round(size: usize) -> usize {
    let step = (size.checked_next_power_of_two().unwrap_or(1) / 16).clamp(4 << 10, 64 << 20);
    size.checked_next_multiple_of(step).unwrap_or(size)
}
