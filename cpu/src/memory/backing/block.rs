//! Large allocations, which have a mapping of their own.

use super::exports::InFiles;
use super::mapping::{Mapping, Pages};

/// The mapping of one allocation, unmapped when the block is dropped.
#[derive(Debug)]
pub struct Block {
    mapping: Mapping,
    in_files: InFiles,
}

impl Block {
    /// At least `length` bytes aligned to `alignment`; `None` when there are none.
    pub fn new(length: usize, alignment: usize) -> Option<Self> {
        let block = Self {
            mapping: Mapping::anonymous(length, alignment)?,
            in_files: InFiles::default(),
        };
        block.in_files.begin(block.pages());
        Some(block)
    }

    /// Its pages.
    pub fn pages(&self) -> Pages<'_> {
        self.mapping.pages()
    }

    /// Whether they are in a file.
    pub fn in_files(&self) -> &InFiles {
        &self.in_files
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.in_files.end(self.mapping.address());
    }
}
