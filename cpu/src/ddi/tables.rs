//! The tables of functions by which a loader, or a program, finds them.

use std::ffi::{CStr, c_void};

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure, entry_point};
use crate::ddi::absent::*;
use crate::ddi::control::*;
use crate::ddi::declare::{functions, write};
use crate::ddi::extension::*;
#[cfg(target_os = "linux")]
use crate::ddi::linux::*;
use crate::ddi::memory::*;
use crate::ddi::module::*;
use crate::ddi::submission::*;
use crate::driver::Driver;

/// Declares tables: their getters, and their entries in order, each with the minor version of specification 1 that added it. A
/// caller of an older version passes a table without the newer entries, which must not be written.
macro_rules! tables {
    ($($getter:ident { $($since:literal $name:ident)* })*) => {$(
        /// Fills the table of this name.
        ///
        /// # Safety
        /// `table` must be null or have room for the entries of specification `version`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $getter(
            version: sys::ze_api_version_t,
            table: *mut *const c_void,
        ) -> sys::ze_result_t {
            // SAFETY: the caller vouches for the table.
            entry_point(|| unsafe { write(version, table, &[$(($since, $name as *const c_void)),*]) })
        }
    )*};
}

/// Declares which functions are implemented.
macro_rules! implemented {
    ($($name:ident)*) => {
        /// The address of a function of Level Zero that is implemented.
        fn implemented(name: &str) -> Option<*const c_void> {
            match name {
                $(stringify!($name) => Some($name as *const c_void),)*
                _ => None,
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// `zeDriverGetExtensionFunctionAddress`: any function that the runtime implements, its own extension's among them.
fn extension_function(_: Driver, name: &CStr, address: &mut *mut c_void) -> ZeResult {
    let found = name.to_str().ok().and_then(implemented);
    *address = found.unwrap_or_default().cast_mut();
    ensure(found.is_some(), sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
}

functions! {
    zeDriverGetExtensionFunctionAddress => extension_function;
}
