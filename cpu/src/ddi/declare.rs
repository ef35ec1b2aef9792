//! How a function of Level Zero is exported that the runtime implements, and how a table of functions is filled.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};

/// Exports functions of Level Zero. `zeName => path;` exports `zeName` as the headers declare it, which calls the function at
/// `path` with its arguments, each [checked](crate::abi::entry::Argument) and as that function takes it, and converts the
/// [`ZeResult`](crate::abi::result::ZeResult) to a result code. Parameters that belong to each other are one argument, a tuple: the
/// place of an array and its length, and what an append signals and waits for. All but the last are in brackets before the last.
///
/// A function that the oldest supported headers do not declare is declared in `tables.csv`. One that is in no table, or whose arguments
/// are not passed on in order, has its parameters behind its name. Instead of a path, `= expression` computes the result. With
/// `-> type`, the value is returned as it is.
macro_rules! functions {
    ($($name:ident
        $(($($([$($with:ident: $of:ty),+])? $argument:ident: $type:ty),* $(,)?) $(-> $returned:ty)?)?
        $(=> $function:path)? $(= $body:expr)?;)*) => {
        $($crate::ddi::declare::export! {
            $name $(($($([$($with: $of),+])? $argument: $type),*) $(-> $returned)?)? $(=> $function)? $(= $body)?
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
    ($name:ident($($([$($with:ident: $of:ty),+])? $argument:ident: $type:ty),*) => $function:path) => {
        $crate::ddi::declare::export! {
            $name($($($($with: $of,)+)? $argument: $type),*)
                = $function($($crate::abi::entry::check(($($($with,)+)? $argument))?),*)
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
