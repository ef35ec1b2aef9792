//! Results inside the runtime, and their conversion to result codes at the API's boundary.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use level_zero_sys as sys;

/// The result of an entry point: a value, or the result code of the error.
pub type ZeResult<T = ()> = Result<T, sys::ze_result_t>;

/// Runs the body of an entry point; a panic must not cross into C, so it becomes `ZE_RESULT_ERROR_UNKNOWN`.
pub fn entry_point(body: impl FnOnce() -> ZeResult) -> sys::ze_result_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => sys::ZE_RESULT_SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => sys::ZE_RESULT_ERROR_UNKNOWN,
    }
}

/// `Ok` when `condition` holds, `code` otherwise.
pub fn ensure(condition: bool, code: sys::ze_result_t) -> ZeResult {
    if condition { Ok(()) } else { Err(code) }
}

thread_local! {
    /// The description of the thread's last error; see [`describe`].
    static LAST: RefCell<CString> = RefCell::default();
}

/// Describes the error that the current call is about to return.
pub fn describe(text: &str) {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    LAST.set(CString::new(bytes).unwrap_or_default());
}

/// The last description of the calling thread; valid until its next one.
pub fn description() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}
