//! Whole pages of a mapping.

use std::marker::PhantomData;
use std::ops::Range;

use crate::system::PAGE;

/// Whole pages of a mapping, which stay mapped while this lives.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a> {
    pub(super) address: usize,
    pub(super) length: usize,
    mapping: PhantomData<&'a ()>,
}

impl Pages<'_> {
    /// The pages of a mapping.
    ///
    /// # Safety
    /// The mapping must own them, and live as long as this.
    pub(super) unsafe fn new(address: usize, length: usize) -> Self {
        Self {
            address,
            length,
            mapping: PhantomData,
        }
    }

    /// Address of the first byte.
    pub fn address(self) -> usize {
        self.address
    }

    /// Length in bytes.
    pub fn length(self) -> usize {
        self.length
    }

    /// The pages in a range of the bytes, whose ends are multiples of the page size; `None` outside of them.
    pub fn part(self, range: Range<usize>) -> Option<Self> {
        let is_part = range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE);
        (is_part && range.start <= range.end && range.end <= self.length).then(|| Self {
            address: self.address + range.start,
            length: range.len(),
            ..self
        })
    }
}
