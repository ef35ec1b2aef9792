//! A slab: a chunk divided into blocks of one size. The record of each block is kept outside of the memory itself, which
//! the host may not be able to access.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use zeusm_process::atomic::{AtomicU32, Ordering};

use super::provider::Chunk;

/// The pool of a slab. Its type depends on the provider, which is unknown here.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolPointer(pub(super) NonNull<()>);

// SAFETY: any thread can use the pool; its users show that it is alive.
unsafe impl Send for PoolPointer {}
// SAFETY: as above.
unsafe impl Sync for PoolPointer {}

/// The kind of a slab's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlabKind {
    /// Blocks of a size class; `slot` is the slab's index in the class's list.
    SizeClass { class: u8, slot: u32 },
    /// One block that is larger than every size class.
    Large,
}

/// A chunk that is divided into blocks.
#[derive(Debug)]
pub(super) struct Slab {
    pub(super) pool: PoolPointer,
    pub(super) chunk: Chunk,
    pub(super) block_size: usize,
    pub(super) kind: SlabKind,
    /// One record for each block: 0 when the block is free, else its padding in bytes plus one. Their distance is a power of two.
    records: Box<[AtomicU32]>,
    /// The power.
    distance: u32,
}

/// The block size from which records are padded. Smaller blocks move to a shard in runs whose records fill a cache line. Of
/// larger blocks a shard takes few at a time, so that packed records would cause false sharing.
const PADDED_RECORDS_FROM: usize = 4 << 10;
/// The distance of padded records is two cache lines, as processors fetch two at a time.
const PADDED_DISTANCE: u32 = (128 / size_of::<u32>()).ilog2();

/// The largest padding of a block: the bytes beyond the requested size.
pub(super) const MAX_PADDING: usize = (u32::MAX - 1) as usize;

impl Slab {
    pub(super) fn new(pool: PoolPointer, chunk: Chunk, block_size: usize, kind: SlabKind) -> Self {
        // Loom's atomics are not small.
        let is_padded = block_size >= PADDED_RECORDS_FROM && !cfg!(loom);
        let distance = if is_padded { PADDED_DISTANCE } else { 0 };
        let records = (chunk.size / block_size) << distance;
        Self {
            pool,
            chunk,
            block_size,
            kind,
            records: (0..records).map(|_| AtomicU32::new(0)).collect(),
            distance,
        }
    }

    /// The number of blocks.
    pub(super) fn count(&self) -> u32 {
        // `Growth::blocks` returns at most half of `u32::MAX`, and a reused chunk is at most half as large again as requested.
        (self.records.len() >> self.distance) as u32
    }

    /// The requested bytes of every block that is not free.
    pub(super) fn allocated_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.count() as usize).filter_map(|index| self.range_of(index))
    }

    /// The requested bytes of the block at `address`; `None` when the block is free.
    pub(super) fn allocated_range(&self, address: usize) -> Option<Range<usize>> {
        let index = address.checked_sub(self.chunk.base.addr().get())? / self.block_size;
        self.range_of(index)
    }

    fn range_of(&self, index: usize) -> Option<Range<usize>> {
        let record = self.records.get(index << self.distance)?;
        let record = record.load(Ordering::Relaxed);
        let requested = self.block_size - (record.checked_sub(1)? as usize);
        let start = self.chunk.base.addr().get() + index * self.block_size;
        Some(start..start + requested)
    }
}

/// Exclusive ownership of one block of a slab.
#[derive(Debug)]
pub(super) struct SlabBlock {
    pub(super) slab: Arc<Slab>,
    pub(super) index: u32,
    /// Its size class; `None` for the only block of a slab.
    class: Option<u8>,
    /// A mark by the layer above; see [`Block::mark`](super::Block::mark).
    pub(super) is_marked: AtomicBool,
}

impl SlabBlock {
    /// `index` must be a block of the slab that has no other owner.
    pub(super) fn new(slab: Arc<Slab>, index: u32) -> Self {
        let class = match slab.kind {
            SlabKind::SizeClass { class, .. } => Some(class),
            SlabKind::Large => None,
        };
        Self {
            slab,
            index,
            class,
            is_marked: AtomicBool::new(false),
        }
    }

    /// The size class; `None` for the only block of a slab.
    pub(super) fn class(&self) -> Option<usize> {
        self.class.map(usize::from)
    }

    #[inline]
    pub(super) fn address(&self) -> NonNull<c_void> {
        let offset = self.index as usize * self.slab.block_size;
        // Address arithmetic: device memory is no allocated object in Rust's sense, so pointer offsets are not defined.
        let base = self.slab.chunk.base;
        base.map_addr(|address| address.saturating_add(offset))
    }

    /// The requested size in bytes; 0 when the block is free.
    #[inline]
    pub(super) fn requested(&self) -> usize {
        match self.record().load(Ordering::Relaxed).checked_sub(1) {
            Some(padding) => self.slab.block_size - padding as usize,
            None => 0,
        }
    }

    /// Marks the block as allocated, with `requested` bytes of it in use.
    #[inline(always)]
    pub(super) fn mark_allocated(&self, requested: usize) {
        let padding = (self.slab.block_size - requested).min(MAX_PADDING) as u32;
        self.record().store(padding + 1, Ordering::Relaxed);
    }

    /// Marks the block as free.
    #[inline]
    pub(super) fn mark_free(&self) {
        self.record().store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn record(&self) -> &AtomicU32 {
        &self.slab.records[(self.index as usize) << self.slab.distance]
    }
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
            chunk: slab.chunk,
            slab: Some(slab).filter(|slab| slab.kind == SlabKind::Large),
        }
    }

    /// Whether it has `size` to `size + slack` bytes, at a multiple of `alignment`.
    pub(super) fn fits(&self, size: usize, slack: usize, alignment: usize) -> bool {
        let Chunk { base, size: own } = self.chunk;
        (size..=with_slack(size, slack)).contains(&own) && is_aligned(base.addr(), alignment)
    }
}

/// The largest chunk that may be used for `size` bytes with `slack` more.
pub(super) fn with_slack(size: usize, slack: usize) -> usize {
    size.saturating_add(slack.min(MAX_PADDING / 2))
}

/// Whether an address is a multiple of an alignment, which 0 leaves open.
pub(super) fn is_aligned(address: NonZeroUsize, alignment: usize) -> bool {
    alignment == 0 || address.get().is_multiple_of(alignment)
}
