//! The functions that a loader exports beside the API's, for programs without a loader. There is no driver to load, nothing is torn
//! down before the process exits, as this library is never unloaded, and nothing is traced.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use level_zero_sys as sys;

use crate::abi::arguments::{enumerate, output, text};
use crate::abi::result::{ensure, entry_point};
use crate::driver;

/// There is no driver to load.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderInit() -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}

/// There is no tracing library behind this loader.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderGetTracingHandle() -> *mut c_void {
    ptr::null_mut()
}

/// Translates a loader's handle to the driver's, which are the same.
///
/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelLoaderTranslateHandle(
    kind: u32,
    from: *mut c_void,
    to: *mut *mut c_void,
) -> sys::ze_result_t {
    /// `ZEL_HANDLE_PHYSICAL_MEM`, the last kind.
    const LAST: u32 = 13;
    entry_point(|| {
        ensure(kind <= LAST, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
        ensure(!from.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE)?;
        // SAFETY: the caller vouches for the pointer.
        *unsafe { output(to) }? = from;
        Ok(())
    })
}

/// As [`zelLoaderTranslateHandle`]; newer static loaders use this name.
///
/// # Safety
/// As for [`zelLoaderTranslateHandle`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelLoaderTranslateHandleInternal(
    kind: u32,
    from: *mut c_void,
    to: *mut *mut c_void,
) -> sys::ze_result_t {
    // SAFETY: the caller vouches for the pointer.
    unsafe { zelLoaderTranslateHandle(kind, from, to) }
}

/// `zel_component_version_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Component {
    name: [c_char; 64],
    specification: u32,
    major: i32,
    minor: i32,
    patch: i32,
}

/// Static loaders require major version 1, use `zeInitDrivers` from minor version 18 on, and pass the specification's
/// version to the table getters.
fn loader() -> Component {
    Component {
        name: text("loader"),
        specification: 1 << 16 | 17,
        major: 1,
        minor: 32,
        patch: 0,
    }
}

/// Counts and describes the components: one, the loader.
///
/// # Safety
/// `count` must be null or valid, and `components` null or with room for `*count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelLoaderGetVersions(
    count: *mut usize,
    components: *mut Component,
) -> sys::ze_result_t {
    entry_point(|| {
        // SAFETY: the caller vouches for the pointer.
        let count = unsafe { output(count) }?;
        let mut narrow = u32::try_from(*count).unwrap_or(u32::MAX);
        // SAFETY: the caller vouches for the array.
        unsafe { enumerate(&raw mut narrow, components, &[loader()]) }?;
        *count = narrow as usize;
        Ok(())
    })
}

/// As [`zelLoaderGetVersions`]; static loaders use this name.
///
/// # Safety
/// As for [`zelLoaderGetVersions`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelLoaderGetVersionsInternal(
    count: *mut usize,
    components: *mut Component,
) -> sys::ze_result_t {
    // SAFETY: the caller vouches for the pointers.
    unsafe { zelLoaderGetVersions(count, components) }
}

/// Describes the loader.
///
/// # Safety
/// `version` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelLoaderGetVersion(version: *mut Component) -> sys::ze_result_t {
    // SAFETY: the caller vouches for the pointer.
    entry_point(|| unsafe { output(version) }.map(|version| *version = loader()))
}

/// As [`zelLoaderGetVersion`], under the name that needs no initialisation.
///
/// # Safety
/// As for [`zelLoaderGetVersion`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelGetLoaderVersion(version: *mut Component) -> sys::ze_result_t {
    // SAFETY: the caller vouches for the pointer.
    unsafe { zelLoaderGetVersion(version) }
}

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
