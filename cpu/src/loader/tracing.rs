//! Tracing by a static loader: nothing is traced.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::arguments::output;
use crate::abi::result::{ensure, entry_point};

/// Leaves a static loader's table of traced functions unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderTracingLayerInit(_table: *mut c_void) -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}

/// As [`zelLoaderTracingLayerInit`], for the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderZerTracingLayerInit(_table: *mut c_void) -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}

/// Whether tracing is on: it is not.
///
/// # Safety
/// `enabled` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelGetTracingLayerState(enabled: *mut bool) -> sys::ze_result_t {
    entry_point(|| {
        // SAFETY: the caller vouches for the pointer.
        *unsafe { output(enabled) }? = false;
        Ok(())
    })
}

/// Nothing is traced.
extern "C" fn nothing() -> sys::ze_result_t {
    sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
}

/// The table of the tracing API: create, destroy, set prologues, set epilogues, set enabled.
///
/// # Safety
/// `table` must be null or have room for five entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelGetTracerApiProcAddrTable(
    version: sys::ze_api_version_t,
    table: *mut *const c_void,
) -> sys::ze_result_t {
    entry_point(|| {
        ensure(!table.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        ensure(
            version.0 >> 16 == 1,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION,
        )?;
        for index in 0..5 {
            // SAFETY: the caller vouches for room for five entries.
            unsafe { table.add(index).write(nothing as *const c_void) };
        }
        Ok(())
    })
}
