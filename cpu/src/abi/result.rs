//! Results inside the runtime, and their conversion to result codes at the API's boundary.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char};
use std::fmt::Display;
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
    /// The description of the thread's last error; see [`described`]. A thread that is ending has none, as calls come from
    /// destructors of its other values, and from functions for the exit.
    static LAST: RefCell<CString> = RefCell::default();
    /// Whether it is of the call in progress. Not reset by each call, as an access takes 25 instructions: if a call that describes
    /// an error succeeds, the next error without a description has that one.
    static IS_OF_THIS_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Describes the error that the current call is about to return, and returns its code.
pub fn described(code: sys::ze_result_t, text: impl Display) -> sys::ze_result_t {
    let text = text.to_string().replace('\0', "");
    replace_description(CString::new(text).unwrap_or_default());
    IS_OF_THIS_CALL.set(true);
    code
}

/// Removes the description of an earlier error when a call fails that has none.
fn forget_earlier_description() {
    if !IS_OF_THIS_CALL.take() {
        replace_description(CString::default());
    }
}

fn replace_description(text: CString) {
    let _ = LAST.try_with(|last| last.replace(text));
}

/// The description of the calling thread's last error, empty if it has none; valid until its next error.
pub fn description() -> *const c_char {
    LAST.try_with(|text| text.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}
