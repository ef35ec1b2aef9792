//! The functions that this runtime does not implement: among others the tools and runtime APIs (`zet`, `zer`), and most of system
//! management (`zes`). It leaves their tables empty, and a loader returns errors for them. In the loader's place it exports the
//! functions and returns the same errors, since a program that is linked against the loader needs every symbol (at start-up,
//! under `LD_BIND_NOW`).

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::result::entry_point;
use crate::ddi::declare::write;
use crate::driver;

/// Exports functions that return an error: `ZE_RESULT_ERROR_UNINITIALIZED` before the driver is initialised, then
/// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`, as a loader returns for a driver without them. Among them are those of tracers: SYCL 2024.2
/// links to some, and calls them only when tracing is requested.
macro_rules! absent {
    ($($name:ident)*) => {$(
        /// Not implemented.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> sys::ze_result_t {
            entry_point(|| {
                driver::expect_initialised()?;
                Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
            })
        }
    )*};
}

/// Exports the getters of tables without an entry.
macro_rules! empty {
    ($($getter:ident)*) => {$(
        /// Leaves the table of this name empty.
        #[unsafe(no_mangle)]
        pub extern "C" fn $getter(
            version: sys::ze_api_version_t,
            table: *mut *const c_void,
        ) -> sys::ze_result_t {
            // SAFETY: nothing is written.
            entry_point(|| unsafe { write(version, table, &[]) })
        }
    )*};
}

include!(concat!(env!("OUT_DIR"), "/absent.rs"));
