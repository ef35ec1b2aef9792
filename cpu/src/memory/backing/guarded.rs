//! The memory of an allocation under the checker: a block of its own, with guard pages before and behind it.

use std::ops::Range;
use std::sync::Arc;

use super::block::Block;
use super::{MIN_ALIGNMENT, PAGE};
use crate::check::{self, Properties, Watch};

/// A block for one allocation, which ends as close to the end of its pages as its alignment permits.
#[derive(Debug)]
pub struct Guarded {
    /// Taken when it is dropped.
    block: Option<Block>,
    offset: usize,
    pages: Range<usize>,
    watch: Option<Arc<Watch>>,
}

impl Guarded {
    /// `size` bytes aligned to `alignment`; `None` when there are none.
    pub fn new(size: usize, alignment: usize) -> Option<Self> {
        let alignment = alignment.max(MIN_ALIGNMENT);
        let before = check::GUARD.next_multiple_of(alignment.max(PAGE));
        let length = size.checked_next_multiple_of(PAGE)?;
        let whole = length.checked_add(before)?.checked_add(check::GUARD)?;
        let block = Block::closed(whole, alignment)?;
        let pages = block.address() + before..block.address() + before + length;
        let slack = (length - size) / alignment * alignment;
        Some(Self {
            offset: before + slack,
            pages,
            block: Some(block),
            watch: None,
        })
    }

    /// Has the checker watch it from now on, as an allocation with these properties. Whether its pages are those that its
    /// kind of memory needs.
    pub fn watch(
        &mut self,
        properties: impl FnOnce(usize, Range<usize>, Range<usize>) -> Properties,
    ) -> bool {
        if let Some(block) = &self.block {
            let start = block.address();
            let whole = start..start + block.mapping().length();
            let properties = properties(start + self.offset, whole, self.pages.clone());
            self.watch = check::watch(properties);
        }
        self.watch.is_some()
    }

    /// The checker's side of it.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.watch.as_ref()
    }

    /// Its block and its offset there.
    pub fn in_block(&self) -> Option<(&Block, usize)> {
        self.block.as_ref().map(|block| (block, self.offset))
    }
}

impl Drop for Guarded {
    /// Leaves the block to the checker's quarantine.
    fn drop(&mut self) {
        if let (Some(watch), Some(block)) = (&self.watch, self.block.take()) {
            check::bury(watch, Box::new(block));
        }
    }
}
