//! The version of the loader that this library replaces.

use std::ffi::c_char;

use level_zero_sys as sys;

use crate::abi::arguments::{enumerate, output, text};
use crate::abi::result::entry_point;

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
