//! The teardown of a loader: this one is never torn down before the process exits, as it is never unloaded.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use level_zero_sys as sys;

use crate::abi::arguments::output;
use crate::abi::result::{ensure, entry_point};
use crate::driver;

/// The application's callback for a loader's teardown.
pub type TeardownCallback = unsafe extern "C" fn();
/// The function by which an application unregisters its callback.
pub type UnregisterCallback = unsafe extern "C" fn(u32);

/// Registers a callback, which is never called.
///
/// # Safety
/// `unregister` and `index` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelRegisterTeardownCallback(
    callback: Option<TeardownCallback>,
    unregister: *mut UnregisterCallback,
    index: *mut u32,
) -> sys::ze_result_t {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    entry_point(|| {
        ensure(
            callback.is_some() && !unregister.is_null(),
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?;
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            *output(index)? = NEXT.fetch_add(1, Ordering::Relaxed);
            unregister.write(unregister_nothing);
        }
        Ok(())
    })
}

/// Nothing to do, as no callback is ever called.
extern "C" fn unregister_nothing(_index: u32) {}

/// Whether the loader is being torn down: never.
#[unsafe(no_mangle)]
pub extern "C" fn zelCheckIsLoaderInTearDown() -> bool {
    false
}

/// The driver is never torn down by itself.
#[unsafe(no_mangle)]
pub extern "C" fn zelSetDriverTeardown() -> sys::ze_result_t {
    entry_point(driver::expect_initialised)
}

/// There is no teardown to delay.
#[unsafe(no_mangle)]
pub extern "C" fn zelSetDelayLoaderContextTeardown() {}

/// Does nothing: the process may use Level Zero until it exits.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderContextTeardown() {}

/// The loader's internal object; there is none.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderGetContext() -> *mut c_void {
    ptr::null_mut()
}

/// The driver is available.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderDriverCheck() -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}
