//! Tracers: SYCL 2024.2 links to these functions and uses them only when tracing is asked for.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::answer::{answer, ensure};

macro_rules! unsupported {
    ($($name:ident)*) => {$(
        /// Answers `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`: nothing is traced.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> sys::ze_result_t {
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        }
    )*};
}

unsupported! {
    zelTracerCreate zelTracerDestroy zelTracerSetPrologues zelTracerSetEpilogues zelTracerSetEnabled
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
    answer(|| {
        ensure(!table.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        ensure(
            version.0 >> 16 == 1,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION,
        )?;
        let entries = [
            zelTracerCreate as *const c_void,
            zelTracerDestroy as *const c_void,
            zelTracerSetPrologues as *const c_void,
            zelTracerSetEpilogues as *const c_void,
            zelTracerSetEnabled as *const c_void,
        ];
        for (index, entry) in entries.into_iter().enumerate() {
            // SAFETY: the caller vouches for room for five entries.
            unsafe { table.add(index).write(entry) };
        }
        Ok(())
    })
}
