//! The functions that a loader exports beside the API's, for programs without a loader.

mod teardown;
mod tracing;
mod version;

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use crate::abi::result::{ensure, entry_point};

/// There is no driver to load.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderInit() -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}

/// There is no tracing library behind this loader.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderGetTracingHandle() -> *mut c_void {
    ptr::null_mut()
}

/// Translates a loader's handle to the driver's, which are the same.
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
    entry_point(|| {
        ensure(kind <= LAST, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
        ensure(!from.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE)?;
        // SAFETY: the caller vouches for the pointer.
        *unsafe { crate::abi::arguments::output(to) }? = from;
        Ok(())
    })
}

/// As [`zelLoaderTranslateHandle`]; newer static loaders use this name.
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
