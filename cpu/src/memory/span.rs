//! Ranges of memory that commands touch.

use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;
use smallvec::SmallVec;

use super::allocation::{Allocation, Pin};
use super::map;
use crate::abi::result::{ZeResult, ensure};
use crate::check;

/// A range of bytes, inside one allocation or in other memory of the process.
#[derive(Clone, Debug)]
pub struct Span {
    address: usize,
    length: usize,
    allocation: Option<Weak<Allocation>>,
    /// The end of the allocation, 0 without one.
    end: usize,
    /// Whether the address may be meant as the end of another allocation.
    may_be_end: bool,
}

impl Span {
    /// `length` bytes from `address` on.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_NULL_POINTER` for a null address, `ZE_RESULT_ERROR_INVALID_SIZE` when the range
    /// begins in an allocation and ends outside of it, or wraps around.
    pub fn new(address: usize, length: usize) -> ZeResult<Self> {
        ensure(address != 0, sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        let end = address
            .checked_add(length)
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        let found = map::find_with(address, |allocation| {
            let allocation_end = allocation.bytes().end;
            // The first and the last page of the program's may have other memory of the program, too.
            let is_other = end > allocation_end && allocation.is_of_program();
            (!is_other).then(|| (Arc::downgrade(allocation), allocation_end))
        });
        let found = found.flatten();
        if let Some((_, allocation_end)) = &found {
            let inside = end <= *allocation_end;
            if !inside && check::is_on() {
                check::is_bad_range(address, length);
            }
            ensure(inside, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        } else if check::is_on() && check::is_bad_range(address, length) {
            return Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        let (allocation, end) = found.unzip();
        Ok(Self {
            address,
            length,
            allocation,
            end: end.unwrap_or(0),
            may_be_end: false,
        })
    }

    /// Notes which of some pointers may be the end of what another one of them points into: small allocations may touch.
    pub fn note_ends(spans: &mut [Self]) {
        if spans.len() < 2 {
            return;
        }
        let ends: SmallVec<[usize; 8]> = spans.iter().map(|it| it.end).collect();
        for span in spans {
            span.may_be_end = ends.contains(&span.address);
        }
    }

    /// `length` bytes of it from `offset` on, which the caller has checked to be inside.
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Self {
        debug_assert!(offset + length <= self.length);
        Self {
            address: self.address + offset,
            length,
            allocation: self.allocation.clone(),
            end: self.end,
            may_be_end: false,
        }
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Its bytes.
    pub fn range(&self) -> Range<usize> {
        self.address..self.address + self.length
    }

    /// Whether it shares a byte with `other`.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.address < other.address + other.length && other.address < self.address + self.length
    }

    /// Whether it is in `allocation`.
    pub fn is_in(&self, allocation: &Allocation) -> bool {
        let mine = self.allocation.as_ref();
        mine.is_some_and(|mine| ptr::eq(mine.as_ptr(), allocation))
    }

    /// Whether a pin of `other` is one of this, too.
    pub fn is_same(&self, other: &Self) -> bool {
        let place = |span: &Self| {
            let allocation = span.allocation.as_ref().map(Weak::as_ptr);
            (span.address, span.may_be_end, allocation)
        };
        place(self) == place(other)
    }

    /// Keeps the allocation alive until the pin is dropped; other memory of the process needs no pin.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when the allocation has been freed, unless the address may be the end of another one.
    pub fn pin(&self) -> ZeResult<Option<Pin>> {
        let Some(allocation) = &self.allocation else {
            return Ok(None);
        };
        let pin = allocation.upgrade().map(Pin::new);
        let is_gone = pin.is_none() && !self.may_be_end;
        if is_gone && check::is_on() {
            check::freed_since(self.address);
        }
        ensure(!is_gone, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        Ok(pin)
    }
}

#[cfg(test)]
mod tests;
