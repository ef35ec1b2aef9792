//! Where the bytes of an allocation come from: a piece of a block when small, a block of their own when large, another
//! process's block when imported.

mod arena;
mod block;
pub mod exports;
mod mapping;
mod record;
mod refusal;
mod share;
#[cfg(test)]
mod tests;

use std::fs::File;

use arena::Piece;
pub use arena::{hold, release};
pub use block::Block;
pub use exports::{Export, read_record};
pub use mapping::Mapping;
pub use record::Record;
pub use refusal::Refusal;
pub use share::is_memory_file;

/// From this size on, memory has a block of its own, so that freeing returns it to the system at once.
const OWN_BLOCK_FROM: usize = 256 << 10;
/// From this size on, a mapping asks for huge pages, which makes the first touch of large memory several times cheaper.
const HUGE_FROM: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// The page size that properties report.
pub const PAGE: usize = 4096;
/// Allocations are aligned to this when the caller does not ask for more: a cache line, and any SIMD vector.
pub const LEAST_ALIGNMENT: usize = 64;
/// The largest alignment that can be asked for.
pub const MOST_ALIGNMENT: usize = HUGE_PAGE;

/// Owned bytes; what they hold at first is not said.
#[derive(Debug)]
pub enum Backing {
    /// A part of a block that others have parts of too.
    Piece(Piece),
    /// A whole block.
    Block(Block),
    /// Memory of another process.
    Import {
        /// All pages that have bytes of it.
        mapping: Mapping,
        /// Where the first byte is in them.
        offset: usize,
    },
}

impl Backing {
    /// `size` bytes aligned to `alignment`, a power of two up to [`MOST_ALIGNMENT`]; `None` when there are none.
    pub fn new(size: usize, alignment: usize) -> Option<Self> {
        if size >= OWN_BLOCK_FROM || alignment > PAGE {
            Block::new(size, alignment).map(Self::Block)
        } else {
            Piece::new(size, alignment).map(Self::Piece)
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

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        match self {
            Self::Piece(piece) => piece.address(),
            Self::Block(block) => block.address(),
            Self::Import { mapping, offset } => mapping.address() + offset,
        }
    }

    /// Its block, and where it begins there; `None` for another process's memory.
    pub fn in_block(&self) -> Option<(&Block, usize)> {
        match self {
            Self::Piece(piece) => Some((piece.block(), piece.address() - piece.block().address())),
            Self::Block(block) => Some((block, 0)),
            Self::Import { .. } => None,
        }
    }
}

/// Whether memory of this process can be exported at all. A shortage that passes does not count.
pub fn can_be_exported() -> bool {
    share::memory_file(PAGE as u64)
        .and_then(|file| exports::reopen(&file, 0))
        .map_or_else(Refusal::is_passing, |_| true)
}
