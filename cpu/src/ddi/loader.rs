//! The functions that a loader exports beside the API's, for programs without a loader. There is no driver to load; nothing is torn
//! down before the process exits, as this library is never unloaded; nothing is traced.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use level_zero_sys as sys;

use crate::abi::arguments::text;
use crate::abi::entry::{Room, check};
use crate::abi::result::{ZeResult, ensure};
use crate::ddi::declare::{functions, write};
use crate::driver;

/// The application's callback for a loader's teardown.
pub type TeardownCallback = unsafe extern "C" fn();
/// The function by which an application unregisters its callback.
pub type UnregisterCallback = unsafe extern "C" fn(u32);

functions! {
    zeLoaderInit() = Ok(());
    zelLoaderDriverCheck() = Ok(());
    zelLoaderGetContext() -> *mut c_void = ptr::null_mut();
    // Handles of a loader are those of the driver. Newer static loaders use the second name.
    zelLoaderTranslateHandle(kind: u32, from: *mut c_void, to: *mut *mut c_void) => translate;
    zelLoaderTranslateHandleInternal(kind: u32, from: *mut c_void, to: *mut *mut c_void) => translate;

    // Static loaders use the second name.
    zelLoaderGetVersions(count: *mut usize, components: *mut Component) => versions;
    zelLoaderGetVersionsInternal(count: *mut usize, components: *mut Component) => versions;
    // The second name needs no initialisation.
    zelLoaderGetVersion(version: *mut Component) => describe;
    zelGetLoaderVersion(version: *mut Component) => describe;

    zelRegisterTeardownCallback(
        callback: Option<TeardownCallback>,
        unregister: *mut Option<UnregisterCallback>,
        index: *mut u32,
    ) => register_teardown;
    zelCheckIsLoaderInTearDown() -> bool = false;
    zelSetDriverTeardown() => driver::expect_initialised;
    zelSetDelayLoaderContextTeardown() -> () = ();
    zelLoaderContextTeardown() -> () = ();

    zeLoaderGetTracingHandle() -> *mut c_void = ptr::null_mut();
    zelLoaderTracingLayerInit(_table: *mut c_void) = Ok(());
    zelLoaderZerTracingLayerInit(_table: *mut c_void) = Ok(());
    zelGetTracingLayerState(enabled: *mut bool) => tracing;
    zelGetTracerApiProcAddrTable(version: sys::ze_api_version_t, table: *mut *const c_void) => tracer_table;

    // The runtime API is not implemented: no identifier, no device, no context.
    zerTranslateDeviceHandleToIdentifier() -> u32 = u32::MAX;
    zerTranslateIdentifierToDeviceHandle() -> *mut c_void = ptr::null_mut();
    zerGetDefaultContext() -> *mut c_void = ptr::null_mut();
}

/// Translates a loader's handle to the driver's, which are the same.
fn translate(kind: u32, from: *mut c_void, to: &mut *mut c_void) -> ZeResult {
    /// `ZEL_HANDLE_PHYSICAL_MEM`, the last kind.
    const LAST: u32 = 13;
    ensure(kind <= LAST, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
    ensure(!from.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE)?;
    *to = from;
    Ok(())
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

/// The loader that this library replaces. Static loaders require major version 1, use `zeInitDrivers` from minor version 18 on, and
/// pass the specification's version to the table getters.
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
/// `components` must be null or have room for `*count` entries.
unsafe fn versions(count: &mut usize, components: *mut Component) -> ZeResult {
    let mut narrow = u32::try_from(*count).unwrap_or(u32::MAX);
    // SAFETY: the caller vouches for the array.
    unsafe { check::<_, Room<_>>((&raw mut narrow, components)) }?.fill(&[loader()])?;
    *count = narrow as usize;
    Ok(())
}

/// Describes the loader.
fn describe(version: &mut Component) -> ZeResult {
    *version = loader();
    Ok(())
}

/// Registers a callback, which is never called.
fn register_teardown(
    callback: Option<TeardownCallback>,
    unregister: &mut Option<UnregisterCallback>,
    index: &mut u32,
) -> ZeResult {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    /// Nothing to do, as no callback is ever called.
    extern "C" fn unregister_nothing(_index: u32) {}
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ensure(callback.is_some(), null)?;
    *index = NEXT.fetch_add(1, Ordering::Relaxed);
    *unregister = Some(unregister_nothing);
    Ok(())
}

/// Nothing is traced.
fn tracing(enabled: &mut bool) -> ZeResult {
    *enabled = false;
    Ok(())
}

/// The table of the tracing API: create, destroy, set prologues, set epilogues, set enabled.
///
/// # Safety
/// `table` must be null or have room for five entries.
unsafe fn tracer_table(version: sys::ze_api_version_t, table: *mut *const c_void) -> ZeResult {
    /// Nothing is traced.
    extern "C" fn nothing() -> sys::ze_result_t {
        sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    }
    // SAFETY: the caller vouches for room for five entries.
    unsafe { write(version, table, &[(0, nothing as *const c_void); 5]) }
}
