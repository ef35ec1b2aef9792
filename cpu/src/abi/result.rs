//! Results inside the runtime, and their conversion to result codes at the API's boundary.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use level_zero_sys as sys;

/// The result of an entry point: a value, or the result code of the error.
pub type ZeResult<T = ()> = Result<T, sys::ze_result_t>;

/// Runs the body of an entry point; a panic must not cross into C, so it becomes `ZE_RESULT_ERROR_UNKNOWN`.
pub fn entry_point(body: impl FnOnce() -> ZeResult) -> sys::ze_result_t {
    let result = catch_unwind(AssertUnwindSafe(body));
    let code = match result.unwrap_or(Err(sys::ZE_RESULT_ERROR_UNKNOWN)) {
        Ok(()) => sys::ZE_RESULT_SUCCESS,
        Err(code) => code,
    };
    if code != sys::ZE_RESULT_SUCCESS && code != sys::ZE_RESULT_NOT_READY {
        forget_earlier_description();
    }
    code
}

/// `Ok` when `condition` holds, `code` otherwise.
pub fn ensure(condition: bool, code: sys::ze_result_t) -> ZeResult {
    if condition { Ok(()) } else { Err(code) }
}

thread_local! {
    /// The description of the thread's last error; see [`describe`].
    static LAST: RefCell<CString> = RefCell::default();
    /// Whether it is of a call that has not returned yet.
    static IS_OF_THIS_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Describes the error that the current call is about to return.
pub fn describe(text: &str) {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    LAST.set(CString::new(bytes).unwrap_or_default());
    IS_OF_THIS_CALL.set(true);
}

/// Removes the description of an earlier error when a call fails that has none.
fn forget_earlier_description() {
    if !IS_OF_THIS_CALL.take() {
        LAST.set(CString::default());
    }
}

/// The description of the calling thread's last error, empty if it has none; valid until its next error.
pub fn description() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}
