//! The life of a loader: this one is never torn down before the process ends, for it is never unloaded.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use level_zero_sys as sys;

use crate::abi::arguments::output;
use crate::abi::result::{answer, ensure};
use crate::driver;

/// What a loader calls when it is torn down.
pub type OfApplication = unsafe extern "C" fn();
/// What an application calls when it needs to be told no more.
pub type OfLoader = unsafe extern "C" fn(u32);

/// Registers a callback, which is never called.
///
/// # Safety
/// `unregister` and `index` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelRegisterTeardownCallback(
    callback: Option<OfApplication>,
    unregister: *mut OfLoader,
    index: *mut u32,
) -> sys::ze_result_t {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    answer(|| {
        ensure(
            callback.is_some() && !unregister.is_null(),
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?;
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            *output(index)? = NEXT.fetch_add(1, Ordering::Relaxed);
            unregister.write(forget);
        }
        Ok(())
    })
}

/// There is nothing to forget of a callback that is never called.
extern "C" fn forget(_index: u32) {}

/// Whether the loader is being torn down: never.
#[unsafe(no_mangle)]
pub extern "C" fn zelCheckIsLoaderInTearDown() -> bool {
    false
}

/// The driver is never torn down by itself.
#[unsafe(no_mangle)]
pub extern "C" fn zelSetDriverTeardown() -> sys::ze_result_t {
    answer(driver::expect_initialised)
}

/// There is no teardown to delay.
#[unsafe(no_mangle)]
pub extern "C" fn zelSetDelayLoaderContextTeardown() {}

/// Leaves everything as it is: the process may use Level Zero to its end.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderContextTeardown() {}

/// A loader's own object, which only its own parts know; there is none here.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderGetContext() -> *mut c_void {
    ptr::null_mut()
}

/// The drivers are there: this one.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderDriverCheck() -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}
