//! Ranges of whole pages, as programs pass them.

use std::ffi::c_void;
use std::ops::Range;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};
use crate::system::PAGE;

/// The addresses of `length` bytes from `address` on.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_NULL_POINTER` for null, `ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT` for an address and
/// `ZE_RESULT_ERROR_UNSUPPORTED_SIZE` for a length that is not a positive multiple of the page size.
pub fn pages(address: *const c_void, length: usize) -> ZeResult<Range<usize>> {
    let start = address as usize;
    ensure(start != 0, sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    ensure(
        start.is_multiple_of(PAGE),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
    )?;
    check_size(length)?;
    let end = start.checked_add(length);
    Ok(start..end.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?)
}

/// # Errors
/// `ZE_RESULT_ERROR_UNSUPPORTED_SIZE` for a size that is not a positive multiple of the page size.
pub fn check_size(size: usize) -> ZeResult {
    ensure(
        size > 0 && size.is_multiple_of(PAGE),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
    )
}
