//! In the loader's place: the functions that a loader has beside the API's.

mod teardown;
mod tracing;
mod version;

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use crate::abi::result::{answer, ensure};

/// There is nothing to load.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderInit() -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}

/// There is no tracing library behind this loader.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderGetTracingHandle() -> *mut c_void {
    ptr::null_mut()
}

/// A driver's handle from a loader's: they are the same.
///
/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelLoaderTranslateHandle(
    kind: u32,
    from: *mut c_void,
    to: *mut *mut c_void,
) -> sys::ze_result_t {
    /// `ZEL_HANDLE_PHYSICAL_MEM`, the last kind.
    const LAST: u32 = 13;
    answer(|| {
        ensure(kind <= LAST, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
        ensure(!from.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE)?;
        // SAFETY: the caller vouches for the pointer.
        *unsafe { crate::abi::arguments::output(to) }? = from;
        Ok(())
    })
}

/// As [`zelLoaderTranslateHandle`]; newer static loaders ask under this name.
///
/// # Safety
/// As for [`zelLoaderTranslateHandle`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelLoaderTranslateHandleInternal(
    kind: u32,
    from: *mut c_void,
    to: *mut *mut c_void,
) -> sys::ze_result_t {
    // SAFETY: the caller vouches for the pointer.
    unsafe { zelLoaderTranslateHandle(kind, from, to) }
}
