//! The extent of an array in bytes, and its comparison with an allocation.

use std::ops::Range;

use super::error::Error;

/// The range of bytes that an array touches, relative to its pointer; empty when it has no elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    start: isize,
    end: isize,
}

impl Extent {
    /// From the bounds in bytes. [`super::Layout`] guarantees `start <= end` and `end - start <= isize::MAX`.
    pub(super) fn new(start: isize, end: isize) -> Self {
        Self { start, end }
    }

    /// The first byte touched, relative to the pointer; negative where strides or offset are.
    #[must_use]
    pub fn start(&self) -> isize {
        self.start
    }

    /// One past the last byte touched, relative to the pointer.
    #[must_use]
    pub fn end(&self) -> isize {
        self.end
    }

    /// The same as a range.
    #[must_use]
    pub fn bytes(&self) -> Range<isize> {
        self.start..self.end
    }

    /// The length in bytes, the gaps of strided arrays included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.abs_diff(self.start)
    }

    /// Whether the array has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The addresses touched when the array's pointer is `pointer`; for an empty extent, the empty range at
    /// `pointer`.
    ///
    /// # Errors
    /// [`Error::OutsideAddressSpace`] when they are not in the address space.
    pub fn addresses(&self, pointer: usize) -> Result<Range<usize>, Error> {
        if self.is_empty() {
            return Ok(pointer..pointer);
        }
        pointer
            .checked_add_signed(self.start)
            .zip(pointer.checked_add_signed(self.end))
            .map(|(start, end)| start..end)
            .ok_or_else(|| Error::OutsideAddressSpace {
                pointer,
                extent: self.bytes(),
            })
    }

    /// Checks that an array at `pointer` touches only bytes of `allocation`, which an empty extent always does.
    ///
    /// # Errors
    /// [`Error::OutsideAllocation`] or [`Error::OutsideAddressSpace`], with pointer and extent.
    pub fn check_within(&self, pointer: usize, allocation: Allocation) -> Result<(), Error> {
        let touched = self.addresses(pointer)?;
        let inside = touched
            .start
            .checked_sub(allocation.base)
            .and_then(|before| before.checked_add(self.len()))
            .is_some_and(|needed| needed <= allocation.size);
        if inside || self.is_empty() {
            Ok(())
        } else {
            Err(Error::OutsideAllocation {
                pointer,
                extent: self.bytes(),
                base: allocation.base,
                size: allocation.size,
            })
        }
    }
}

/// An allocation as `zeMemGetAddressRange` reports it (Level Zero specification, "Core API", Memory).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Allocation {
    /// Its first address.
    pub base: usize,
    /// Its size in bytes.
    pub size: usize,
}
