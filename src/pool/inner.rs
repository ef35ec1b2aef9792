//! Allocation and release of a pool's blocks: by the thread's shard, else the size class, else the provider.

use std::sync::Arc;

use super::address_map;
use super::chunks::{ChunkAllocator, FreeChunk};
use super::failure::{Callback, Failure};
use super::provider::Provider;
use super::registry::retry_out_of_memory;
use super::shard::{Shard, capacity};
use super::size_class::SizeClass;
use super::sizes::{self, COUNT, LARGEST_CLASS, SIZES};
use super::slab::{Slab, SlabBlock, SlabKind};
use super::statistics::{Statistics, Sum, total};
use crate::error::{Error, Result};
use crate::history;
use crate::process::Mutex;

/// A shard on a cache line of its own, to avoid false sharing between threads with different shards.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedShard(Mutex<Shard>);

/// The state of a pool in one process, shared by its handles and blocks.
#[derive(Debug)]
pub(super) struct Inner<P: Provider> {
    shards: Box<[PaddedShard]>,
    classes: [SizeClass; COUNT],
    pub(super) chunks: ChunkAllocator<P>,
    pub(super) callback: Callback,
    sum: Sum,
    /// Whether small blocks share slabs, see [`Provider::shares_allocations`].
    has_slabs: bool,
}

/// A block, and whether the provider was called to allocate it.
struct NewBlock {
    block: SlabBlock,
    is_miss: bool,
}

impl<P: Provider> Inner<P> {
    /// `shards` is a power of two.
    pub(super) fn new(chunks: ChunkAllocator<P>, shards: usize) -> Self {
        Self {
            shards: (0..shards).map(|_| PaddedShard::default()).collect(),
            classes: std::array::from_fn(|_| SizeClass::default()),
            has_slabs: chunks.provider().shares_allocations(),
            chunks,
            callback: Callback::default(),
            sum: Sum::default(),
        }
    }

    pub(super) fn allocate(
        &self,
        shard: usize,
        size: usize,
        alignment: usize,
    ) -> Result<SlabBlock> {
        let class = self.class_of(size, alignment);
        if let Some(block) = class.and_then(|class| self.take_from_shard(shard, class, size)) {
            self.note_allocated(&block, size, true);
            return Ok(block);
        }
        let answer = self.with_retries(size, alignment, |is_minimal| match class {
            Some(class) => self.refill(shard, class, is_minimal),
            None => self.allocate_large(shard, size, alignment),
        });
        let mut shard = self.shards[shard].0.lock();
        match &answer {
            Ok(NewBlock { block, is_miss }) => {
                let block_size = block.slab().block_size();
                shard
                    .counters
                    .allocated(block_size, size, *is_miss, &self.sum);
                block.mark_allocated(size);
            }
            Err(_) => shard.counters.failed(),
        }
        drop(shard);
        let new = answer?;
        self.note_allocated(&new.block, size, !new.is_miss);
        Ok(new.block)
    }

    /// Allocates from the shard's magazines alone.
    pub(super) fn allocate_cached(
        &self,
        shard: usize,
        size: usize,
        alignment: usize,
    ) -> Option<SlabBlock> {
        let class = self.class_of(size, alignment)?;
        let block = self.take_from_shard(shard, class, size)?;
        self.note_allocated(&block, size, true);
        Some(block)
    }

    /// Without a lock of the pool, as the history has one.
    fn note_allocated(&self, block: &SlabBlock, size: usize, is_hit: bool) {
        let place = self.chunks.place();
        history::allocated(|| (block.address().addr().get(), size), place, Some(is_hit));
    }

    /// The size class for `size` bytes; `None` where the block is a chunk of its own.
    fn class_of(&self, size: usize, alignment: usize) -> Option<usize> {
        sizes::class_of(size, alignment).filter(|_| self.has_slabs)
    }

    fn take_from_shard(&self, shard: usize, class: usize, size: usize) -> Option<SlabBlock> {
        let mut shard = self.shards[shard].0.lock();
        let block = shard.magazines[class].pop()?;
        shard
            .counters
            .allocated(SIZES[class], size, false, &self.sum);
        block.mark_allocated(size);
        Some(block)
    }

    pub(super) fn free(&self, shard: usize, block: SlabBlock) {
        let (block_size, requested) = (block.slab().block_size(), block.requested());
        let place = self.chunks.place();
        history::freed(|| (block.address().addr().get(), requested), place);
        block.mark_free();
        let surplus = {
            let mut own = self.shards[shard].0.lock();
            own.counters.freed(block_size, requested, &self.sum);
            match block.slab().kind() {
                SlabKind::SizeClass { class, .. } => {
                    let class = usize::from(class);
                    own.put(class, block).map(|blocks| (class, blocks))
                }
                SlabKind::Large => {
                    drop(own);
                    let chunk = FreeChunk::new(block.into_slab());
                    return self.chunks.release_to_shard(shard, chunk);
                }
            }
        };
        if let Some((class, blocks)) = surplus {
            self.free_to_class(class, blocks);
        }
    }

    /// Allocates blocks of the class: one to return, the others for the shard's magazine. A minimal refill takes one.
    fn refill(&self, shard: usize, class: usize, is_minimal: bool) -> Result<NewBlock> {
        let wanted = if is_minimal {
            1
        } else {
            capacity(class).div_ceil(2)
        };
        let mut is_miss = false;
        let mut blocks = self.classes[class].allocate(wanted);
        if blocks.is_empty() {
            (blocks, is_miss) = self.grow(shard, class, wanted, is_minimal)?;
        }
        let Some(block) = blocks.pop() else {
            // Unreachable, as a slab has at least one block.
            return Err(Error::PoolLimit {
                size: SIZES[class],
                held: self.chunks.reserved(),
                limit: 0,
            });
        };
        if !blocks.is_empty() {
            self.shards[shard].0.lock().magazines[class].append(&mut blocks);
        }
        Ok(NewBlock { block, is_miss })
    }

    fn grow(
        &self,
        shard: usize,
        class: usize,
        wanted: usize,
        is_minimal: bool,
    ) -> Result<(Vec<SlabBlock>, bool)> {
        let size = SIZES[class];
        let growth = &self.chunks.options().growth;
        let blocks = if is_minimal {
            1
        } else {
            growth.blocks(size, self.classes[class].bytes())
        };
        let alignment = sizes::natural_alignment(class);
        let acquired = self.chunks.acquire(shard, blocks * size, alignment)?;
        let blocks =
            self.classes[class].grow(class, acquired.free.chunk, wanted, *self.chunks.place());
        Ok((blocks, acquired.is_new))
    }

    fn allocate_large(&self, shard: usize, size: usize, alignment: usize) -> Result<NewBlock> {
        let acquired = self.chunks.acquire(shard, size, alignment)?;
        let FreeChunk { chunk, slab } = acquired.free;
        let slab = slab.unwrap_or_else(|| {
            let slab = Arc::new(Slab::new(chunk, chunk.size, SlabKind::Large));
            address_map::register(&slab, *self.chunks.place());
            slab
        });
        Ok(NewBlock {
            block: SlabBlock::new(slab, 0),
            is_miss: acquired.is_new,
        })
    }

    /// Attempts an allocation first as usual, then with a minimal refill after free memory was returned to the provider, and
    /// once more in that way if the failure callback requests it.
    fn with_retries(
        &self,
        size: usize,
        alignment: usize,
        attempt: impl Fn(bool) -> Result<NewBlock>,
    ) -> Result<NewBlock> {
        if let Ok(new) = attempt(false) {
            return Ok(new);
        }
        let after_trim = || {
            self.trim(0);
            retry_out_of_memory(|| attempt(true))
        };
        let mut answer = after_trim();
        if answer.is_err() {
            match self.callback.call(|| self.failure(size, alignment)) {
                // Blocks that the callback freed may be cached.
                Ok(true) => answer = after_trim(),
                Ok(false) => {}
                Err(error) => answer = Err(error),
            }
        }
        answer.map_err(|cause| {
            let failure = self.failure(size, alignment);
            Error::Pool {
                size,
                used_bytes: failure.used_bytes,
                total_bytes: failure.total_bytes,
                limit: failure.limit,
                cause: Box::new(cause),
            }
        })
    }

    fn failure(&self, size: usize, alignment: usize) -> Failure {
        let statistics = self.statistics();
        Failure {
            size,
            alignment,
            used_bytes: statistics.used_bytes,
            total_bytes: statistics.total_bytes,
            limit: statistics.limit,
        }
    }

    /// Returns blocks to their size class; slabs that this releases become free chunks.
    fn free_to_class(&self, class: usize, blocks: Vec<SlabBlock>) {
        for slab in self.classes[class].free(blocks) {
            self.chunks.release(FreeChunk::new(slab));
        }
    }

    /// Returns free memory to the provider until at most `keep` bytes are held; returns the number of bytes.
    pub(super) fn trim(&self, keep: usize) -> usize {
        let before = self.chunks.reserved();
        self.chunks.trim(keep);
        if self.chunks.reserved() > keep {
            for padded in &self.shards {
                let magazines = std::mem::take(&mut padded.0.lock().magazines);
                for (class, blocks) in magazines.into_iter().enumerate() {
                    self.free_to_class(class, blocks);
                }
            }
            for class in &self.classes {
                for slab in class.release_empty() {
                    self.chunks.release(FreeChunk::new(slab));
                }
            }
            self.chunks.trim(keep);
        }
        let freed = before.saturating_sub(self.chunks.reserved());
        if freed > 0 {
            history::trimmed(freed, self.chunks.place());
        }
        freed
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.with_statistics(|_, statistics| statistics)
    }

    /// Locks every shard, publishes its counters, and passes the statistics to `then`.
    pub(super) fn with_statistics<T>(&self, then: impl FnOnce(&Sum, Statistics) -> T) -> T {
        // Lock order: several shards are locked in ascending order only.
        let mut shards: Vec<_> = self.shards.iter().map(|padded| padded.0.lock()).collect();
        for shard in &mut shards {
            shard.counters.publish(&self.sum);
        }
        let peak = self.sum.settle();
        let mut statistics = total(shards.iter().map(|shard| &shard.counters));
        statistics.peak_bytes = usize::try_from(peak).unwrap_or(0);
        statistics.total_bytes = self.chunks.reserved();
        statistics.free_bytes = statistics.total_bytes.saturating_sub(statistics.used_bytes);
        statistics.limit = self.chunks.limit();
        then(&self.sum, statistics)
    }
}

impl<P: Provider> Drop for Inner<P> {
    fn drop(&mut self) {
        // No block is allocated, as each has a reference to this.
        for class in &mut self.classes {
            for slab in class.take_slabs() {
                self.chunks.release(FreeChunk::new(slab));
            }
        }
        self.chunks.trim(0);
    }
}

const _: () = assert!(LARGEST_CLASS == SIZES[COUNT - 1]);
