//! A slab: a chunk divided into blocks of one size, and what is known of each, kept apart from the memory itself.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::provider::Chunk;
use crate::process::atomic::{AtomicU32, Ordering};

/// What a slab is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Blocks of a class; `slot` is the slab's place in the class's list.
    Class { class: u8, slot: u32 },
    /// One block, beyond the classes.
    Large,
}

/// A chunk in service.
#[derive(Debug)]
pub(super) struct Slab {
    chunk: Chunk,
    block_size: usize,
    purpose: Use,
    /// For each block 0 when it is free, else one more than the bytes of it that nobody asked for.
    spare: Box<[AtomicU32]>,
    /// How far apart those are.
    stride: usize,
}

/// The size of blocks from which on the record of each has a cache line of its own. Shards take smaller ones in runs
/// that fill a line; of these they take so few that two threads would write to the same line all the time.
const LONELY: usize = 4 << 10;

/// The largest part of a block that may be beyond what was asked for.
pub(super) const LARGEST_SPARE: usize = (u32::MAX - 1) as usize;

impl Slab {
    pub(super) fn new(chunk: Chunk, block_size: usize, purpose: Use) -> Self {
        let stride = if block_size < LONELY {
            1
        } else {
            64 / size_of::<AtomicU32>()
        };
        let records = chunk.size / block_size * stride;
        Self {
            chunk,
            block_size,
            purpose,
            spare: (0..records).map(|_| AtomicU32::new(0)).collect(),
            stride,
        }
    }

    pub(super) fn chunk(&self) -> Chunk {
        self.chunk
    }

    pub(super) fn purpose(&self) -> Use {
        self.purpose
    }

    pub(super) fn block_size(&self) -> usize {
        self.block_size
    }

    /// How many blocks there are.
    pub(super) fn count(&self) -> u32 {
        // `Growth::blocks` sees to it that they fit, in a chunk twice as large even.
        (self.spare.len() / self.stride) as u32
    }

    /// The bytes from the start of the block at `address` that are in use; `None` when the block is free.
    pub(super) fn used_at(&self, address: usize) -> Option<Range<usize>> {
        let index = address.checked_sub(self.chunk.base.addr().get())? / self.block_size;
        let spare = self.spare.get(index * self.stride)?.load(Ordering::Relaxed);
        let used = self.block_size - (spare.checked_sub(1)? as usize);
        let start = self.chunk.base.addr().get() + index * self.block_size;
        Some(start..start + used)
    }
}

/// One block of a slab. Whoever has the piece has the block.
#[derive(Debug)]
pub(super) struct Piece {
    slab: Arc<Slab>,
    index: u32,
}

impl Piece {
    /// `index` is a block of the slab that nobody else has.
    pub(super) fn new(slab: Arc<Slab>, index: u32) -> Self {
        Self { slab, index }
    }

    pub(super) fn slab(&self) -> &Arc<Slab> {
        &self.slab
    }

    pub(super) fn into_slab(self) -> Arc<Slab> {
        self.slab
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn address(&self) -> NonNull<c_void> {
        let offset = self.index as usize * self.slab.block_size;
        // No pointer arithmetic in the language's sense: of memory that the host cannot see it knows no allocation.
        let base = self.slab.chunk.base;
        base.map_addr(|address| address.saturating_add(offset))
    }

    /// How many bytes of the block were asked for; 0 when it is free.
    pub(super) fn asked(&self) -> usize {
        match self.record().load(Ordering::Relaxed).checked_sub(1) {
            Some(spare) => self.slab.block_size - spare as usize,
            None => 0,
        }
    }

    /// Marks the block as in use with `asked` bytes of it.
    pub(super) fn mark_used(&self, asked: usize) {
        let spare = (self.slab.block_size - asked).min(LARGEST_SPARE) as u32;
        self.record().store(spare + 1, Ordering::Relaxed);
    }

    /// Marks the block as free.
    pub(super) fn mark_free(&self) {
        self.record().store(0, Ordering::Relaxed);
    }

    fn record(&self) -> &AtomicU32 {
        &self.slab.spare[self.index as usize * self.slab.stride]
    }
}
