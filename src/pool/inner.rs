//! Allocation and release of a pool's blocks: by the thread's shard, else the size class, else the provider.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use zeusm_process::atomic::{AtomicU32, Ordering};
use zeusm_process::{Mutex, Owned, SpinGuard, SpinLock};

use super::address_map;
use super::chunks::ChunkAllocator;
use super::failure::Callback;
use super::peak::{Level, Peaks};
use super::provider::Provider;
use super::shard::{self, Shard, capacity};
use super::size_class::SizeClass;
use super::sizes::{self, COUNT, LARGEST_CLASS, SIZES};
use super::slab::{FreeChunk, PoolPointer, Slab, SlabBlock, SlabKind};
use super::statistics::{Statistics, total};
use crate::error::{Error, Result};
use crate::history::{self, Action};

/// A shard on a cache line of its own, to avoid false sharing between threads with different shards.
#[derive(Default)]
#[repr(align(128))]
struct PaddedShard(SpinLock<Shard>);

/// The state of a pool in one process, shared by its handles and blocks.
///
/// Handles own a reference each. A block has none, as the atomic increment and decrement would be a tenth of its cost: it is
/// counted by a shard, and the last handle's drop, [`retire`](Self::retire), makes the pool own itself until no block is.
pub(super) struct Inner<P: Provider> {
    shards: Box<[PaddedShard]>,
    classes: Box<[SizeClass]>,
    pub(super) chunks: ChunkAllocator<P>,
    pub(super) callback: Callback,
    /// Its lock is only taken with all shards locked.
    peaks: Mutex<Peaks>,
    /// Whether small blocks share slabs, see [`Provider::shares_allocations`].
    has_slabs: bool,
    /// A reference to itself, if there are blocks and no handle.
    itself: Mutex<Option<Arc<Owned<Self>>>>,
    /// The threads that have trimmed the pool for an allocation and not finished it. Other threads read it after they have
    /// locked their shard or begun a transfer, and then leave free blocks to those threads.
    short: AtomicU32,
    /// Knows the process that made the pool.
    origin: Owned<()>,
}

/// A thread that has trimmed a pool for an allocation, until the drop.
pub(super) struct Shortage<'a>(&'a AtomicU32);

impl Drop for Shortage<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A block, and whether the provider was called to allocate it.
pub(super) type NewBlock = (SlabBlock, bool);

impl<P: Provider> Inner<P> {
    /// `shards` is a power of two.
    pub(super) fn new(chunks: ChunkAllocator<P>, shards: usize) -> Self {
        Self {
            shards: (0..shards).map(|_| PaddedShard::default()).collect(),
            classes: (0..COUNT).map(|_| SizeClass::default()).collect(),
            has_slabs: chunks.provider.shares_allocations(),
            chunks,
            callback: Callback::default(),
            peaks: Mutex::default(),
            itself: Mutex::default(),
            short: AtomicU32::new(0),
            origin: Owned::new(()),
        }
    }

    /// The pool of an allocated block, which is not dropped before the block is freed. The block must be of a pool with this
    /// type of provider.
    pub(super) fn of(block: &SlabBlock) -> NonNull<Self> {
        block.slab.pool.0.cast()
    }

    fn pointer(&self) -> PoolPointer {
        PoolPointer(NonNull::from(self).cast())
    }

    /// Drops the reference of the last handle, after which no block is allocated any more. The pool lives until its last block
    /// is freed.
    pub(super) fn retire(last: Arc<Owned<Self>>) {
        let mut shards = last.lock_shards();
        if total(shards.iter().map(|shard| &shard.counters)).used_count > 0 {
            shards.iter_mut().for_each(|shard| shard.is_retired = true);
            *last.itself.lock() = Some(Arc::clone(&last));
        }
    }

    /// Locks a shard. A thread that has to wait for it uses another shard from now on.
    #[inline(always)]
    fn lock(&self, shard: usize) -> SpinGuard<'_, Shard> {
        let own = &self.shards[shard].0;
        own.try_lock().unwrap_or_else(|| Self::lock_and_leave(own))
    }

    #[cold]
    fn lock_and_leave(own: &SpinLock<Shard>) -> SpinGuard<'_, Shard> {
        shard::leave();
        own.lock()
    }

    /// The shard of this thread.
    pub(super) fn shard(&self) -> usize {
        shard::of_thread(self.shards.len())
    }

    pub(super) fn allocate(
        &self,
        shard: usize,
        size: usize,
        alignment: usize,
    ) -> Result<SlabBlock> {
        let class = self.class_of(size, alignment);
        if let Some(block) = class.and_then(|class| self.take_from_shard(shard, class, size)) {
            self.note_allocated(block.address(), size, true);
            return Ok(block);
        }
        let answer = self.with_retries(size, alignment, |is_minimal| match class {
            Some(class) => self.refill(shard, class, is_minimal),
            None => self.allocate_large(shard, size, alignment),
        });
        if answer.is_err() {
            self.lock(shard).counters.failed();
        }
        let (block, is_miss) = answer?;
        self.count_allocated(self.lock(shard), shard, &block, size, is_miss);
        self.note_allocated(block.address(), size, !is_miss);
        Ok(block)
    }

    /// Allocates from the shard's magazines alone.
    #[inline(always)]
    pub(super) fn allocate_cached(
        &self,
        shard: usize,
        size: usize,
        alignment: usize,
    ) -> Option<SlabBlock> {
        let class = self.class_of(size, alignment)?;
        let block = self.take_from_shard(shard, class, size)?;
        self.note_allocated(block.address(), size, true);
        Some(block)
    }

    /// Without a lock of the pool, as the history has one.
    #[inline(always)]
    fn note_allocated(&self, address: NonNull<c_void>, size: usize, is_hit: bool) {
        let place = &self.chunks.place;
        let block = || (address.addr().get(), size);
        history::note(Action::Allocate, block, place, Some(is_hit));
    }

    /// The size class for `size` bytes; `None` where the block is a chunk of its own.
    fn class_of(&self, size: usize, alignment: usize) -> Option<usize> {
        sizes::class_of(size, alignment).filter(|_| self.has_slabs)
    }

    #[inline(always)]
    fn take_from_shard(&self, shard: usize, class: usize, size: usize) -> Option<SlabBlock> {
        let mut own = self.lock(shard);
        let block = own.take(class)?;
        self.count_allocated(own, shard, &block, size, false);
        Some(block)
    }

    /// Counts an allocation in its shard, whose lock is `own`. Where that may be a new peak, all shards are locked.
    #[inline(always)]
    fn count_allocated(
        &self,
        mut own: SpinGuard<'_, Shard>,
        shard: usize,
        block: &SlabBlock,
        size: usize,
        is_miss: bool,
    ) {
        let block_size = block.slab.block_size;
        block.mark_allocated(size);
        if !own.counters.level.exceeds_with(block_size) {
            own.counters.allocated(block_size, size, is_miss);
            return;
        }
        drop(own);
        let mut shards = self.lock_shards();
        shards[shard].counters.allocated(block_size, size, is_miss);
        self.peaks.lock().measure(levels(&mut shards));
    }

    /// Frees a block to a shard, after which the pool may be dropped. There is therefore no reference to the pool among the
    /// arguments.
    ///
    /// # Safety
    /// The block must be of a pool with this type of provider.
    pub(super) unsafe fn free(shard: usize, block: SlabBlock) {
        // SAFETY: the pool is not dropped before the block is counted as freed.
        let pool = unsafe { Self::of(&block).as_ref() };
        let (block_size, requested) = (block.slab.block_size, block.requested());
        let place = &pool.chunks.place;
        let freed = || (block.address().addr().get(), requested);
        history::note(Action::Free, freed, place, None);
        block.mark_free();
        if pool.origin.is_inherited() {
            // The parent's pool owns the memory; this process only records that the block is not allocated any more.
            return;
        }
        let mut own = pool.lock(shard);
        // Before another thread can have the block: the peak has its bytes once.
        own.counters.freed(block_size, requested);
        let mut own = pool.cache(own, shard, block);
        let itself = own.is_retired.then(|| pool.itself.lock().clone());
        own.counters.ended();
        drop(own);
        if let Some(Some(itself)) = itself {
            Self::end_if_unused(&itself);
        }
    }

    /// Makes a block available to other allocations. `own` is the shard, locked, and so is the result.
    #[inline(always)]
    fn cache<'a>(
        &'a self,
        mut own: SpinGuard<'a, Shard>,
        shard: usize,
        block: SlabBlock,
    ) -> SpinGuard<'a, Shard> {
        match block.class() {
            Some(class) => {
                let Some((class, surplus)) = own.put(class, block) else {
                    return own;
                };
                // With the shard's lock: a trim finds the blocks in the shard, or afterwards in the class or the cache.
                let evicted = self.free_to_class(class, surplus);
                if evicted.is_empty() {
                    return own;
                }
                drop(own);
                self.chunks.return_to_provider(evicted);
            }
            None => {
                drop(own);
                let chunk = FreeChunk::new(block.slab);
                self.chunks.release_to_shard(shard, chunk);
            }
        }
        self.lock(shard)
    }

    /// Removes the reference of a retired pool to itself when its last block was freed.
    fn end_if_unused(itself: &Self) {
        if itself.statistics().used_count == 0 {
            let last = itself.itself.lock().take();
            // Outside the lock; the caller has another reference.
            drop(last);
        }
    }

    /// From now on until the drop, other threads take no more blocks than they need.
    pub(super) fn begin_shortage(&self) -> Shortage<'_> {
        self.short.fetch_add(1, Ordering::Relaxed);
        Shortage(&self.short)
    }

    fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed) > 0
    }

    /// Allocates blocks of the class: one to return, the others for the shard's magazine. A minimal refill takes one.
    fn refill(&self, shard: usize, class: usize, is_minimal: bool) -> Result<NewBlock> {
        let free = self.take_blocks(shard, class, is_minimal, SizeClass::allocate);
        if let Some(block) = free {
            return Ok((block, false));
        }
        self.grow(shard, class, is_minimal)
    }

    /// Moves blocks of the class to the shard's magazine, but for one, with the shard's lock: a trim either finds them in the
    /// shard, or precedes the move, for which the thread that trims is then counted as short.
    fn take_blocks(
        &self,
        shard: usize,
        class: usize,
        is_minimal: bool,
        take: impl FnOnce(&SizeClass, usize) -> Vec<SlabBlock>,
    ) -> Option<SlabBlock> {
        let mut own = self.lock(shard);
        let wanted = if is_minimal || self.is_short() {
            1
        } else {
            capacity(class).div_ceil(2)
        };
        let mut blocks = take(&self.classes[class], wanted);
        let block = blocks.pop()?;
        if !blocks.is_empty() {
            own.refill(class, blocks);
        }
        Some(block)
    }

    /// Allocates a block of a new slab. A minimal one has no other.
    fn grow(&self, shard: usize, class: usize, is_minimal: bool) -> Result<NewBlock> {
        // A thread that lacks the slab's bytes waits until the slab's other blocks can be found, or was short before.
        let _transfer = self.chunks.begin_transfer();
        let size = SIZES[class];
        let growth = &self.chunks.options.growth;
        let blocks = if is_minimal || self.is_short() {
            1
        } else {
            growth.blocks(size, self.classes[class].bytes())
        };
        let alignment = sizes::natural_alignment(class);
        let (free, is_miss) = self.chunks.acquire(shard, blocks * size, alignment)?;
        let (pool, place) = (self.pointer(), self.chunks.place);
        let take = |of: &SizeClass, wanted| of.grow(pool, class, free.chunk, wanted, place);
        let block = self.take_blocks(shard, class, is_minimal, take);
        // There is one, as a slab has at least one block.
        block
            .map(|block| (block, is_miss))
            .ok_or_else(|| Error::PoolLimit {
                size,
                held: self.chunks.reserved(),
                limit: 0,
            })
    }

    fn allocate_large(&self, shard: usize, size: usize, alignment: usize) -> Result<NewBlock> {
        let (FreeChunk { chunk, slab }, is_new) = self.chunks.acquire(shard, size, alignment)?;
        let slab = slab.unwrap_or_else(|| {
            let slab = Arc::new(Slab::new(
                self.pointer(),
                chunk,
                chunk.size,
                SlabKind::Large,
            ));
            address_map::register(&slab, self.chunks.place);
            slab
        });
        Ok((SlabBlock::new(slab, 0), is_new))
    }

    /// Returns blocks to their size class; slabs that this releases become free chunks. Returns the chunks that are to be
    /// returned to the provider for that.
    #[must_use]
    fn free_to_class(&self, class: usize, blocks: Vec<SlabBlock>) -> Vec<FreeChunk> {
        self.release(self.classes[class].free(blocks))
    }

    fn release(&self, slabs: Vec<Arc<Slab>>) -> Vec<FreeChunk> {
        let chunks = slabs.into_iter().map(FreeChunk::new);
        chunks
            .flat_map(|chunk| self.chunks.release(chunk))
            .collect()
    }

    /// Returns free memory to the provider until at most `keep` bytes are held; returns the number of bytes.
    pub(super) fn trim(&self, keep: usize) -> usize {
        let before = self.chunks.reserved();
        self.chunks.trim(keep);
        if self.chunks.held() > keep {
            // A thread whose shard is locked uses another one from then on: the peak is measured with what each shard has now.
            self.statistics();
            let _transfer = self.chunks.begin_transfer();
            for padded in &self.shards {
                let free = padded.0.lock().drain();
                for (class, blocks) in free {
                    let evicted = self.free_to_class(class, blocks);
                    self.chunks.return_to_provider(evicted);
                }
            }
            for class in &self.classes {
                let evicted = self.release(class.release_empty());
                self.chunks.return_to_provider(evicted);
            }
            self.chunks.trim(keep);
        }
        let freed = before.saturating_sub(self.chunks.reserved());
        if freed > 0 {
            history::note(Action::Trim, || (0, freed), &self.chunks.place, None);
        }
        freed
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.with_statistics(|_, statistics| statistics)
    }

    /// Locks every shard, measures the peak, and passes the peaks and the statistics to `then`.
    pub(super) fn with_statistics<T>(&self, then: impl FnOnce(&mut Peaks, Statistics) -> T) -> T {
        let mut shards = self.lock_shards();
        let mut peaks = self.peaks.lock();
        peaks.measure(levels(&mut shards));
        let mut statistics = total(shards.iter().map(|shard| &shard.counters));
        statistics.peak_bytes = usize::try_from(peaks.settle()).unwrap_or(0);
        statistics.total_bytes = self.chunks.reserved();
        statistics.free_bytes = statistics.total_bytes.saturating_sub(statistics.used_bytes);
        statistics.limit = self.chunks.limit();
        let answer = then(&mut peaks, statistics);
        // The shares of a peak that was reset.
        peaks.measure(levels(&mut shards));
        answer
    }

    fn lock_shards(&self) -> Vec<SpinGuard<'_, Shard>> {
        // Lock order: several shards are locked in ascending order only.
        self.shards.iter().map(|padded| padded.0.lock()).collect()
    }
}

fn levels<'a>(shards: &'a mut [SpinGuard<'_, Shard>]) -> impl Iterator<Item = &'a mut Level> {
    shards.iter_mut().map(|shard| &mut shard.counters.level)
}

impl<P: Provider> Drop for Inner<P> {
    fn drop(&mut self) {
        // No block is allocated: the pool is dropped with its last handle or its last block.
        for class in &mut self.classes {
            for slab in class.take_slabs() {
                let evicted = self.chunks.release(FreeChunk::new(slab));
                self.chunks.return_to_provider(evicted);
            }
        }
        self.chunks.trim(0);
    }
}

const _: () = assert!(LARGEST_CLASS == SIZES[COUNT - 1]);

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::ptr::NonNull;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::pool::options::Options;

    struct Nothing;

    // SAFETY: it provides no memory.
    unsafe impl Provider for Nothing {
        fn allocate(&self, _: usize, _: usize) -> Result<NonNull<c_void>> {
            Err(Error::DevicesListed)
        }

        unsafe fn free(&self, _: NonNull<c_void>, _: usize) {}
    }

    #[test]
    fn a_thread_leaves_a_shard_that_another_one_has_locked() {
        const SHARDS: usize = 4;
        let chunks =
            ChunkAllocator::new(Arc::new(Nothing), Options::default(), 1, Arc::default(), 1);
        let inner = Inner::new(chunks, SHARDS);
        let leaves = || {
            let own = inner.shard();
            drop(inner.lock(own));
            inner.shard() != own
        };
        assert!(!leaves());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let end = Instant::now() + Duration::from_secs(60);
                while !leaves() {
                    assert!(Instant::now() < end, "the shard was never left");
                }
            });
            while !other.is_finished() {
                let _all = inner.lock_shards();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
}
