//! The per-shard cache of large blocks: one slot for each shard, with the chunk that was freed last. Threads that
//! allocate and free large blocks in turn then contend for no lock.
//!
//! A slot reserves bytes of the cache's capacity for its largest chunk so far, also while the chunk is in use: a thread that
//! frees the same size again changes nothing that threads share. The reservations end when the cache is drained.
//!
//! A chunk in this cache counts as outstanding. All slots are drained before the provider is called for more memory.

use zeusm_process::Mutex;

use super::slab::FreeChunk;

#[derive(Debug)]
pub(super) struct ShardCache(Box<[PaddedSlot]>);

/// The slot of one shard, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedSlot(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    chunk: Option<FreeChunk>,
    /// The size of the largest chunk that it takes.
    reserved: usize,
}

impl ShardCache {
    /// One slot for each shard, without reservations.
    pub(super) fn new(shards: usize) -> Self {
        Self((0..shards).map(|_| PaddedSlot::default()).collect())
    }

    /// Takes the chunk of a shard if it meets a condition.
    pub(super) fn take_if(
        &self,
        shard: usize,
        condition: impl FnOnce(&mut FreeChunk) -> bool,
    ) -> Option<FreeChunk> {
        self.0[shard].0.lock().chunk.take_if(condition)
    }

    /// Stores a chunk; returns it when the slot is taken, or when it is larger than the slot's reservation.
    pub(super) fn put(&self, shard: usize, chunk: FreeChunk) -> Option<FreeChunk> {
        let mut slot = self.0[shard].0.lock();
        if slot.chunk.is_some() || chunk.chunk.size > slot.reserved {
            return Some(chunk);
        }
        slot.chunk = Some(chunk);
        None
    }

    /// Stores a chunk in place of the one that is there, after the reservation is raised for it by at most `available` bytes.
    /// Returns the bytes by which it is raised, and the chunk that it replaces.
    ///
    /// # Errors
    /// The chunk, if more bytes would be needed.
    pub(super) fn replace(
        &self,
        shard: usize,
        chunk: FreeChunk,
        available: usize,
    ) -> Result<(usize, Option<FreeChunk>), FreeChunk> {
        let mut slot = self.0[shard].0.lock();
        let raise = chunk.chunk.size.saturating_sub(slot.reserved);
        if raise > available {
            return Err(chunk);
        }
        slot.reserved += raise;
        Ok((raise, slot.chunk.replace(chunk)))
    }

    /// Takes the chunks of all slots, and ends their reservations.
    pub(super) fn drain(&self) -> impl Iterator<Item = FreeChunk> {
        let taken = |slot: &PaddedSlot| std::mem::take(&mut *slot.0.lock()).chunk;
        self.0.iter().filter_map(taken)
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

    fn size(chunk: &FreeChunk) -> usize {
        chunk.chunk.size
    }

    #[test]
    fn a_slot_holds_one_chunk_up_to_its_reservation() {
        let cache = ShardCache::new(2);
        let put = |bytes| cache.put(1, free_chunk(bytes)).as_ref().map(size);
        let replace = |bytes, available| {
            let answer = cache.replace(1, free_chunk(bytes), available);
            answer
                .map(|(raise, chunk)| (raise, chunk.as_ref().map(size)))
                .map_err(|chunk| size(&chunk))
        };
        let take = |shard, most| {
            let taken = cache.take_if(shard, |free| free.chunk.size <= most);
            taken.as_ref().map(size)
        };
        assert_eq!(put(1), Some(1));
        assert_eq!(replace(101, 100), Err(101));
        assert_eq!(replace(100, 100), Ok((100, None)));
        assert_eq!(put(99), Some(99));
        assert_eq!(take(1, 99), None);
        assert_eq!(take(1, 100), Some(100));
        assert_eq!(put(101), Some(101));
        assert_eq!(put(100), None);
        assert_eq!(replace(101, 1), Ok((1, Some(100))));
        assert_eq!(replace(90, 0), Ok((0, Some(101))));
        assert_eq!((take(0, 101), take(1, 101)), (None, Some(90)));
        assert_eq!(put(101), None);
        let drained: Vec<_> = cache.drain().map(|chunk| size(&chunk)).collect();
        assert_eq!(drained, [101]);
        assert_eq!(put(1), Some(1));
    }
}
