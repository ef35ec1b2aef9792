//! The per-shard cache of large blocks: one slot for each shard, with the chunk that was freed last. Threads that
//! allocate and free large blocks in turn then contend for no lock.
//!
//! A chunk in this cache counts as outstanding. All slots are drained before the provider is called for more memory.

use super::chunks::FreeChunk;
use crate::process::Mutex;

#[derive(Debug)]
pub(super) struct ShardCache {
    slots: Box<[Slot]>,
    /// The largest chunk that a slot takes, in bytes.
    slot_limit: usize,
}

/// The slot of one shard, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot(Mutex<Option<FreeChunk>>);

impl ShardCache {
    /// One slot for each shard; together they take at most a quarter of `limit` bytes.
    pub(super) fn new(shards: usize, limit: usize) -> Self {
        Self {
            slots: (0..shards).map(|_| Slot::default()).collect(),
            slot_limit: limit / 4 / shards,
        }
    }

    /// The maximum number of bytes in all slots together.
    pub(super) fn capacity(&self) -> usize {
        self.slot_limit * self.slots.len()
    }

    pub(super) fn take(&self, shard: usize) -> Option<FreeChunk> {
        self.slots[shard].0.lock().take()
    }

    /// Stores a chunk; returns the chunk that it replaces, or itself when it is too large for a slot.
    pub(super) fn put(&self, shard: usize, chunk: FreeChunk) -> Option<FreeChunk> {
        if chunk.chunk.size > self.slot_limit {
            return Some(chunk);
        }
        self.slots[shard].0.lock().replace(chunk)
    }

    /// Takes the chunks of all slots.
    pub(super) fn drain(&self) -> impl Iterator<Item = FreeChunk> {
        self.slots.iter().filter_map(|slot| slot.0.lock().take())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::ptr::NonNull;

    use super::*;
    use crate::pool::provider::Chunk;

    fn free_chunk(size: usize) -> FreeChunk {
        let base = NonNull::without_provenance(NonZeroUsize::MIN);
        let chunk = Chunk { base, size };
        FreeChunk { chunk, slab: None }
    }

    #[test]
    fn a_slot_holds_one_chunk_up_to_its_limit() {
        let cache = ShardCache::new(4, 1600);
        assert_eq!(cache.capacity(), 400);
        let size = |chunk: Option<FreeChunk>| chunk.map(|chunk| chunk.chunk.size);
        assert_eq!(size(cache.put(1, free_chunk(101))), Some(101));
        assert_eq!(size(cache.put(1, free_chunk(100))), None);
        assert_eq!(size(cache.put(1, free_chunk(99))), Some(100));
        assert_eq!(size(cache.take(0)), None);
        assert_eq!(size(cache.take(1)), Some(99));
        assert_eq!(size(cache.take(1)), None);
    }
}
