//! Results inside the runtime, and how they become result codes at its boundary.

use std::panic::{AssertUnwindSafe, catch_unwind};

use level_zero_sys as sys;

/// What every entry point computes: a value, or the result code that says why not.
pub type Answer<T = ()> = Result<T, sys::ze_result_t>;

/// Runs the body of an entry point; a panic must not cross into C, so it becomes `ZE_RESULT_ERROR_UNKNOWN`.
pub fn answer(body: impl FnOnce() -> Answer) -> sys::ze_result_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => sys::ZE_RESULT_SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => sys::ZE_RESULT_ERROR_UNKNOWN,
    }
}

/// `Ok` when `condition` holds, `code` otherwise.
pub fn ensure(condition: bool, code: sys::ze_result_t) -> Answer {
    if condition { Ok(()) } else { Err(code) }
}
