//! Ranges of whole pages, as programs pass them.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};
use crate::system::PAGE;

/// A range of whole pages.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Address of the first byte.
    pub address: usize,
    /// Length in bytes.
    pub length: usize,
}

impl Pages {
    /// `length` bytes from `address` on.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_NULL_POINTER` for null, `ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT` for an address and
    /// `ZE_RESULT_ERROR_UNSUPPORTED_SIZE` for a length that is not a positive multiple of the page size.
    pub fn new(address: *const c_void, length: usize) -> ZeResult<Self> {
        ensure(
            !address.is_null(),
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?;
        let address = address as usize;
        ensure(
            address.is_multiple_of(PAGE),
            sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
        )?;
        check_size(length)?;
        ensure(
            address.checked_add(length).is_some(),
            sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
        )?;
        Ok(Self { address, length })
    }

    /// The end of the last one.
    pub fn end(self) -> usize {
        self.address + self.length
    }
}

/// # Errors
/// `ZE_RESULT_ERROR_UNSUPPORTED_SIZE` for a size that is not a positive multiple of the page size.
pub fn check_size(size: usize) -> ZeResult {
    ensure(
        size > 0 && size.is_multiple_of(PAGE),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
    )
}
