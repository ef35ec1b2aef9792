//! Calls of Level Zero: optional functions, result codes, and the count-then-fill protocol of lists.

use std::ffi::CStr;
use std::ptr;

use level_zero_sys as sys;

use crate::error::{Error, Result};

/// Calls a function of a [`sys::Library`] and converts its result code to a `Result`. In a fork's child it returns an error
/// where the driver does not work there.
///
/// Expands to an unsafe call: the caller writes the `unsafe` block and its reason.
macro_rules! call {
    ($library:expr, $function:ident ( $($argument:expr),* $(,)? )) => {
        match $library.$function {
            Some(function) if $crate::confinement::has_driver() => {
                $crate::call::check(stringify!($function), function($($argument),*))
            }
            Some(_) => Err($crate::error::Error::Forked(stringify!($function))),
            None => Err($crate::error::Error::from($library.missing(stringify!($function)))),
        }
    };
}

/// `Ok` for success, else [`Error::Call`] with the function and the code.
pub(crate) fn check(function: &'static str, result: sys::ze_result_t) -> Result<()> {
    if result == sys::ZE_RESULT_SUCCESS {
        Ok(())
    } else {
        Err(Error::Call { function, result })
    }
}

/// Queries the count, then that many items; the second query may return fewer.
pub(crate) fn enumerate<T: Copy>(
    empty: T,
    mut ask: impl FnMut(&mut u32, *mut T) -> Result<()>,
) -> Result<Vec<T>> {
    let mut count = 0;
    ask(&mut count, ptr::null_mut())?;
    let mut items = vec![empty; count as usize];
    if count > 0 {
        ask(&mut count, items.as_mut_ptr())?;
        items.truncate(count as usize);
    }
    Ok(items)
}

/// The driver's description of this thread's last error (since specification 1.6); empty if there is none.
pub(crate) fn last_error(library: &sys::Library, driver: sys::ze_driver_handle_t) -> String {
    let Some(describe) = library.zeDriverGetLastErrorDescription else {
        return String::new();
    };
    let mut text = ptr::null();
    // SAFETY: the driver lives as long as the process, or is null for a library that accepts that.
    let result = unsafe { describe(driver, &mut text) };
    if result != sys::ZE_RESULT_SUCCESS || text.is_null() {
        return String::new();
    }
    // SAFETY: the driver returned a string, which is valid until the thread's next failing call.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
