//! Ranges of memory that commands touch.

use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;

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
        let allocation = map::find(address);
        if let Some(allocation) = &allocation {
            let inside = end <= allocation.base() + allocation.size();
            if !inside && check::is_on() {
                check::is_bad_range(address, length);
            }
            ensure(inside, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        } else if check::is_on() && check::is_bad_range(address, length) {
            return Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        Ok(Self {
            address,
            length,
            allocation: allocation.as_ref().map(Arc::downgrade),
        })
    }

    /// `length` bytes of it from `offset` on, which the caller has checked to be inside.
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Self {
        debug_assert!(offset + length <= self.length);
        Self {
            address: self.address + offset,
            length,
            allocation: self.allocation.clone(),
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

    /// Keeps the allocation alive until the pin is dropped; other memory of the process needs no pin.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when the allocation has been freed.
    pub fn pin(&self) -> ZeResult<Option<Pin>> {
        match &self.allocation {
            None => Ok(None),
            Some(allocation) => allocation
                .upgrade()
                .map(|allocation| Some(Pin::new(allocation)))
                .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
    }
}
