//! The API's boundary: every function by name, and the tables through which a loader finds them.
//!
//! One declarative table, `ddi!`, produces both. Its groups are the tables of `ze_ddi.h`, its lines their entries in
//! order, each with the minor version of specification 1 that added it: a caller of an older version passes a table
//! without the newer entries, which must not be written.

mod control;
mod extension;
mod memory;
mod module;
mod submission;
mod sysman;
mod tools;

use std::ffi::{CStr, c_char, c_void};

use level_zero_sys as sys;

use crate::abi::arguments::output;
use crate::abi::result::{ZeResult, ensure};
use crate::driver;

/// One entry of a table.
pub struct Entry {
    /// The function's name.
    pub name: &'static str,
    /// The minor version of specification 1 that added it.
    pub since: u32,
    /// The function.
    pub address: *const c_void,
    /// Whether it is implemented.
    pub implemented: bool,
}

/// Declares tables: their getters, and for each entry the exported function.
///
/// `9 zeName(argument: type) => path;` exports `zeName`, which calls the function at `path` with its arguments and
/// converts the [`ZeResult`] to a result code. With `; events` after the arguments, the function has the three further
/// parameters of an append, which are passed on as [`Events`](crate::command_list::Events). Instead of a path,
/// `= expression` computes the result. With `-> type`, the value is returned as it is. With neither path nor expression
/// the function is unsupported.
macro_rules! ddi {
    ($($getter:ident { $($since:literal $name:ident
        $(($($argument:ident: $type:ty),* $(; $events:ident)? $(,)?) $(-> $returned:ty)? $(=> $function:path)? $(= $body:expr)?)?;)* })*) => {
        $($($crate::ddi::export! {
            $name $(($($argument: $type),* $(; $events)?) $(-> $returned)? $(=> $function)? $(= $body)?)?
        })*)*

        $(
            /// Fills the table of this name.
            ///
            /// # Safety
            /// `table` must be null or have room for the entries of specification `version`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $getter(
                version: level_zero_sys::ze_api_version_t,
                table: *mut *const std::ffi::c_void,
            ) -> level_zero_sys::ze_result_t {
                // SAFETY: the caller vouches for the table.
                $crate::abi::result::entry_point(|| unsafe {
                    $crate::ddi::write(version, table, &[$($crate::ddi::entry! {
                        $since $name $($($function)? $($body)?)?
                    }),*])
                })
            }
        )*

        /// Every entry of this part of the API.
        pub(super) fn entries() -> Vec<$crate::ddi::Entry> {
            vec![$($($crate::ddi::entry! { $since $name $($($function)? $($body)?)? }),*),*]
        }
    };
}
use ddi;

/// Exports functions that are not implemented.
macro_rules! absent {
    ($($name:ident)*) => {$(
        /// Not implemented: `ZE_RESULT_ERROR_UNINITIALIZED` before the driver is initialised, then
        /// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`, as a loader returns for a driver without it.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> level_zero_sys::ze_result_t {
            $crate::abi::result::entry_point(|| {
                $crate::driver::expect_initialised()?;
                Err(level_zero_sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
            })
        }
    )*};
}
use absent;

/// Exports one function of [`ddi!`].
macro_rules! export {
    ($name:ident) => {
        $crate::ddi::absent! { $name }
    };
    ($name:ident($($argument:ident: $type:ty),*; events) => $function:path) => {
        $crate::ddi::export! {
            $name(
                $($argument: $type,)*
                signal: level_zero_sys::ze_event_handle_t,
                count: u32,
                waits: *mut level_zero_sys::ze_event_handle_t
            ) = $function($($argument,)* $crate::command_list::Events { signal, count, waits })
        }
    };
    ($name:ident($($argument:ident: $type:ty),*) $(-> $returned:ty)? => $function:path) => {
        $crate::ddi::export! { $name($($argument: $type),*) $(-> $returned)? = $function($($argument),*) }
    };
    ($name:ident($($argument:ident: $type:ty),*) = $body:expr) => {
        $crate::ddi::export! {
            $name($($argument: $type),*) -> level_zero_sys::ze_result_t
                = $crate::abi::result::entry_point(|| $body)
        }
    };
    ($name:ident($($argument:ident: $type:ty),*) -> $returned:ty = $body:expr) => {
        /// The function of this name in the Level Zero specification.
        ///
        /// # Safety
        /// Pointers that are neither null nor misaligned must be valid, as the specification demands.
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $returned {
            // SAFETY: the caller vouches for the pointers.
            unsafe { $body }
        }
    };
}
use export;

/// The [`Entry`] of a function of [`ddi!`], which is implemented when it has a path or an expression.
macro_rules! entry {
    ($since:literal $name:ident $($implementation:tt)?) => {
        $crate::ddi::Entry {
            name: stringify!($name),
            since: $since,
            address: $name as *const std::ffi::c_void,
            implemented: $crate::ddi::entry!(@is_implemented $($implementation)?),
        }
    };
    (@is_implemented) => {
        false
    };
    (@is_implemented $implementation:tt) => {
        true
    };
}
use entry;

/// Writes the entries that a caller of `version` knows.
///
/// # Safety
/// `table` must be null or have room for the entries of specification `version`.
unsafe fn write(
    version: sys::ze_api_version_t,
    table: *mut *const c_void,
    entries: &[Entry],
) -> ZeResult {
    ensure(!table.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    let (major, minor) = (version.0 >> 16, version.0 & 0xffff);
    ensure(major == 1, sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION)?;
    for (index, entry) in entries.iter().enumerate() {
        if entry.since <= minor {
            // SAFETY: the entry is part of the table in the caller's version.
            unsafe { table.add(index).write(entry.address) };
        }
    }
    Ok(())
}

/// The address of an implemented function.
pub fn address(name: &str) -> Option<*const c_void> {
    [
        control::entries(),
        submission::entries(),
        memory::entries(),
        sysman::entries(),
        module::entries(),
    ]
    .into_iter()
    .flatten()
    .find(|entry| entry.implemented && entry.name == name)
    .map(|entry| entry.address)
    .or_else(|| extension::address(name))
}

/// `zeDriverGetExtensionFunctionAddress`: any function that the runtime implements, its own extension's among them.
///
/// # Safety
/// `address` must be null, misaligned or valid; `name` must be null or end in a zero byte.
pub unsafe fn extension_function(
    driver: sys::ze_driver_handle_t,
    name: *const c_char,
    address: *mut *mut c_void,
) -> ZeResult {
    driver::expect(driver)?;
    ensure(!name.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    // SAFETY: the caller vouches for the pointers.
    let (name, address) = unsafe { (CStr::from_ptr(name), output(address)?) };
    let found = name.to_str().ok().and_then(self::address);
    *address = found.unwrap_or(std::ptr::null()).cast_mut();
    ensure(found.is_some(), sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
}
