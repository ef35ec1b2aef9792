//! The memory of allocations: small ones are suballocated from a block, large ones have a block of their own, imported
//! ones are a mapping of another process's block.

mod arena;
mod block;
mod error;
pub mod exports;
mod guarded;
mod mapping;
mod record;
mod reserve;
mod share;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::sync::Arc;

use arena::Suballocation;
pub use arena::at_fork;
pub use block::Block;
pub use error::ShareError;
pub use exports::{Export, read_record};
pub use guarded::Guarded;
pub use mapping::Mapping;
pub use record::Record;
pub use share::{is_memory_file, memory_file, own_memory_file};

use crate::check::{self, Watch};
use crate::system;

/// From this size on, memory has a block of its own, so that freeing returns it to the system at once.
const OWN_BLOCK_THRESHOLD: usize = 256 << 10;
/// From this size on, a mapping asks for huge pages, which makes the first touch of large memory several times cheaper.
const HUGE_PAGE_THRESHOLD: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// The page size of the system.
pub const PAGE: usize = system::PAGE;
/// Allocations are aligned to this when the caller does not ask for more: a cache line, and any SIMD vector.
pub const MIN_ALIGNMENT: usize = 64;
/// The largest alignment that can be asked for.
pub const MAX_ALIGNMENT: usize = 1 << 30;

/// The memory of an allocation, uninitialised at first.
#[derive(Debug)]
pub enum Backing {
    /// A part of a shared block.
    Suballocation(Suballocation),
    /// A whole block.
    Block(Block),
    /// A block with guard pages, when the checker is on.
    Guarded(Guarded),
    /// A file that is not of this runtime.
    External(Mapping),
    /// Memory of another process.
    Import {
        /// All pages of the allocation.
        mapping: Mapping,
        /// The offset of the first byte in them.
        offset: usize,
    },
}

impl Backing {
    /// `size` bytes aligned to `alignment`, a power of two up to [`MAX_ALIGNMENT`], `alone` in a block or not; `None` when
    /// there are none.
    pub fn new(size: usize, alignment: usize, alone: bool) -> Option<Self> {
        if check::is_on() && !alone {
            Guarded::new(size, alignment).map(Self::Guarded)
        } else if alone || size >= OWN_BLOCK_THRESHOLD || alignment > PAGE {
            // With a byte more, which costs a page of addresses at most: the end of this allocation, to which a recorded
            // command may have a pointer, is the base of no other one, whose free would make that command an error. Parts of
            // a block may touch, as a gap would cost small allocations an eighth of their memory.
            Block::new(size.checked_add(1)?, alignment).map(Self::Block)
        } else {
            Suballocation::new(size, alignment).map(Self::Suballocation)
        }
    }

    /// The pages of another process's file that hold the allocation of `record`.
    pub fn import(file: &File, record: &Record) -> Option<Self> {
        let start = record.offset / PAGE as u64 * PAGE as u64;
        let length = usize::try_from(record.offset + record.size - start).ok()?;
        let mapping = Mapping::of_file(file, start, length.checked_next_multiple_of(PAGE)?)?;
        let offset = (record.offset - start) as usize;
        Some(Self::Import { mapping, offset })
    }

    /// The first `size` bytes of any file that can be mapped, aligned to `alignment`; `None` when it is shorter or the system
    /// refuses.
    pub fn external(file: &File, size: usize, alignment: usize) -> Option<Self> {
        Mapping::of_external(file, size, alignment).map(Self::External)
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        match self {
            Self::Suballocation(suballocation) => suballocation.address(),
            Self::Block(block) => block.address(),
            Self::Guarded(guarded) => guarded
                .in_block()
                .map_or(0, |(block, offset)| block.address() + offset),
            Self::External(mapping) => mapping.address(),
            Self::Import { mapping, offset } => mapping.address() + offset,
        }
    }

    /// The alignment that memory of its form always has: that of a page only where it has pages of its own.
    pub fn granularity(&self) -> usize {
        match self {
            Self::Block(_) | Self::External(_) => PAGE,
            Self::Suballocation(_) | Self::Guarded(_) | Self::Import { .. } => MIN_ALIGNMENT,
        }
    }

    /// Its block and its offset there; `None` for memory of another process or file.
    pub fn in_block(&self) -> Option<(&Block, usize)> {
        match self {
            Self::Suballocation(suballocation) => Some((
                suballocation.block(),
                suballocation.address() - suballocation.block().address(),
            )),
            Self::Block(block) => Some((block, 0)),
            Self::Guarded(guarded) => guarded.in_block(),
            Self::External(_) | Self::Import { .. } => None,
        }
    }

    /// The checker's side of it, when the checker is on.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        match self {
            Self::Guarded(guarded) => guarded.watched(),
            _ => None,
        }
    }
}

/// Whether new memory of this process can be exported; a transient error does not count.
pub fn can_be_exported() -> bool {
    share::memory_file(PAGE as u64)
        .and_then(|file| exports::reopen(&file, 0))
        .and_then(|_| share::can_still_move())
        .map_or_else(ShareError::is_transient, |_| true)
}
