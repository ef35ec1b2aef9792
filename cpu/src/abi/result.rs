//! Results inside the runtime, and how they become result codes at its boundary.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
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

thread_local! {
    /// What the last failed call of the thread has to say; see [`describe`].
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps a description of the error that the current call is about to return.
pub fn describe(text: &str) {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    LAST.set(CString::new(bytes).unwrap_or_default());
}

/// The last description of the calling thread; valid until its next one.
pub fn description() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}
