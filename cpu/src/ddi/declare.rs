//! How a function of Level Zero is exported that the runtime implements, and how a table of functions is filled.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};

/// Exports functions of Level Zero. `zeName => path;` exports `zeName` as the headers declare it, which calls the function at
/// `path` with its arguments, each [checked](crate::abi::entry::Argument) and as that function takes it, and converts the
/// [`ZeResult`](crate::abi::result::ZeResult) to a result code. The three last parameters of an append are passed on as
/// [`Events`](crate::command_list::Events).
///
/// A function that the oldest supported headers do not declare is declared in `tables.csv`. One that is in no table, or whose arguments
/// are not passed on one by one, has its parameters behind its name, with `; events` for those three. Instead of a path, `= expression`
/// computes the result. With `-> type`, the value is returned as it is.
macro_rules! functions {
    ($($name:ident
        $(($($argument:ident: $type:ty),* $(; $events:ident)? $(,)?) $(-> $returned:ty)?)?
        $(=> $function:path)? $(= $body:expr)?;)*) => {
        $($crate::ddi::declare::export! {
            $name $(($($argument: $type),* $(; $events)?) $(-> $returned)?)? $(=> $function)? $(= $body)?
        })*
    };
}
pub(super) use functions;

include!(concat!(env!("OUT_DIR"), "/declarations.rs"));
pub(super) use declaration;

/// Exports one function of [`functions!`].
macro_rules! export {
    ($name:ident => $function:path) => {
        $crate::ddi::declare::declaration! { $name [$crate::ddi::declare::export] => $function }
    };
    ($name:ident($($argument:ident: $type:ty),*; events) => $function:path) => {
        $crate::ddi::declare::export! {
            $name(
                $($argument: $type,)*
                signal: level_zero_sys::ze_event_handle_t,
                count: u32,
                waits: *mut level_zero_sys::ze_event_handle_t
            ) = $function(
                $($crate::abi::entry::check($argument)?,)*
                $crate::command_list::Events::new(signal, count, waits)
            )
        }
    };
    ($name:ident($($argument:ident: $type:ty),*) => $function:path) => {
        $crate::ddi::declare::export! {
            $name($($argument: $type),*) = $function($($crate::abi::entry::check($argument)?),*)
        }
    };
    ($name:ident($($argument:ident: $type:ty),*) -> $returned:ty => $function:path) => {
        $crate::ddi::declare::export! { $name($($argument: $type),*) -> $returned = $function($($argument),*) }
    };
    ($name:ident($($argument:ident: $type:ty),*) = $body:expr) => {
        $crate::ddi::declare::export! {
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
pub(super) use export;

/// Writes the entries that a caller of `version` knows.
///
/// # Safety
/// `table` must be null or have room for the entries of specification `version`.
pub unsafe fn write(
    version: sys::ze_api_version_t,
    table: *mut *const c_void,
    entries: &[(u32, *const c_void)],
) -> ZeResult {
    ensure(!table.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    let (major, minor) = (version.0 >> 16, version.0 & 0xffff);
    ensure(major == 1, sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION)?;
    for (index, (since, address)) in entries.iter().enumerate() {
        if *since <= minor {
            // SAFETY: the entry is part of the table in the caller's version.
            unsafe { table.add(index).write(*address) };
        }
    }
    Ok(())
}
