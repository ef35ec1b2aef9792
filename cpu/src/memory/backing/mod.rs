//! The memory of allocations: small ones are pages of an arena, large ones have a mapping of their own, imported ones are a
//! mapping of another process's pages.

mod arena;
mod block;
mod error;
pub mod exports;
mod guarded;
mod mapping;
mod memory_file;
mod part;
mod record;
mod reserve;
mod share;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::sync::Arc;

use level_zero_sys as sys;

use arena::Suballocation;
pub use arena::at_fork;
use block::Block;
pub use error::ShareError;
pub use exports::Export;
use exports::InFiles;
pub use guarded::Guarded;
pub use mapping::Mapping;
use mapping::Pages;
pub use memory_file::{is_memory_file, memory_file, own_memory_file, reopen};
pub use part::Part;
pub use record::Record;

use crate::abi::result::ZeResult;
use crate::check::{self, Watch};
use crate::system::PAGE;

/// From this size on, memory has a mapping of its own, so that freeing returns it to the system at once.
const OWN_BLOCK_THRESHOLD: usize = 256 << 10;
/// The largest alignment that can be asked for.
pub const MAX_ALIGNMENT: usize = 1 << 30;

/// The memory of an allocation, uninitialised at first.
#[derive(Debug)]
pub enum Backing {
    /// Pages of an arena.
    Suballocation(Suballocation),
    /// A mapping.
    Block(Block),
    /// A mapping with guard pages, when the checker is on.
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
    /// `size` bytes aligned to `alignment`, a power of two up to [`MAX_ALIGNMENT`], `at_page`, under the checker, too, or not;
    /// `None` when there are none.
    pub fn new(size: usize, alignment: usize, at_page: bool) -> Option<Self> {
        if check::is_on() && !at_page {
            Guarded::new(size, alignment).map(Self::Guarded)
        } else if size >= OWN_BLOCK_THRESHOLD || alignment > PAGE {
            // With a byte more, which costs a page of addresses at most: the end of this allocation, to which a recorded
            // command may have a pointer, is the base of no other one, whose free would make that command an error.
            Block::new(size.checked_add(1)?, alignment).map(Self::Block)
        } else {
            Suballocation::new(size).map(Self::Suballocation)
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
            Self::Block(block) => block.pages().address(),
            Self::Guarded(guarded) => guarded
                .pages()
                .map_or(0, |pages| pages.address() + guarded.offset()),
            Self::External(mapping) => mapping.address(),
            Self::Import { mapping, offset } => mapping.address() + offset,
        }
    }

    /// The alignment that memory of its form always has.
    pub fn granularity(&self) -> usize {
        match self {
            Self::Suballocation(_) | Self::Block(_) | Self::External(_) => PAGE,
            Self::Guarded(_) | Self::Import { .. } => guarded::MIN_ALIGNMENT,
        }
    }

    /// Whether it is new memory of this process.
    pub fn is_own(&self) -> bool {
        !matches!(self, Self::External(_) | Self::Import { .. })
    }

    /// Its pages, its offset in the first of them, and whether they are in a file; `None` for memory of another process or file.
    fn own(&self) -> Option<(Pages<'_>, usize, &InFiles)> {
        match self {
            Self::Suballocation(it) => Some((it.pages()?, 0, it.in_files())),
            Self::Block(it) => Some((it.pages(), 0, it.in_files())),
            Self::Guarded(it) => Some((it.pages()?, it.offset(), it.in_files())),
            Self::External(_) | Self::Import { .. } => None,
        }
    }

    /// Exports it; `record` describes the allocation, which begins at an offset in its file.
    ///
    /// # Errors
    /// Those of [`InFiles::export`]; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for memory of another process or file.
    pub fn export(&self, record: impl FnOnce(usize) -> Record) -> ZeResult<Export> {
        let (pages, offset, in_files) = self.own().ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        if let Some(watch) = self.watched() {
            watch.release();
        }
        in_files.export(pages, &record(offset))
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
    memory_file(PAGE as u64)
        .and_then(|_| share::can_still_move())
        .map_or_else(ShareError::is_transient, |_| true)
}
