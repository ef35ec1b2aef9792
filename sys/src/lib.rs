//! Raw Level Zero: the types of the installed headers, and the functions of a library opened at run time.
//!
//! Nothing but [`extensions`] is written by hand: bindgen reads `ze_api.h` and `ze_ddi.h` of the machine that builds the crate.
//! Nothing is linked either: [`load`] opens the system's loader, [`load_from`] any library that speaks Level Zero,
//! and every function is an `Option`, because a library may be older or newer than the headers.
//!
//! ```no_run
//! use level_zero_sys as sys;
//!
//! let library = sys::load()?;
//! let init = library.zeInit.ok_or_else(|| library.missing("zeInit"))?;
//! // SAFETY: zeInit takes flags only, and 0 asks for every driver.
//! let result = unsafe { init(0) };
//! assert_eq!(result, sys::ZE_RESULT_SUCCESS, "{:?}", result.name());
//! # Ok::<(), sys::LoadError>(())
//! ```
//!
//! Source: the Level Zero specification, "Core programming guide" and "Core API".
#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod extensions;
mod library;

/// What bindgen made of the headers; documented by the headers' own comments.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    rustdoc::all,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

/// The function table, written by the build script from the functions bindgen saw.
#[allow(non_snake_case)]
mod functions {
    use super::bindings::*;
    use super::library::symbol;

    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

/// The names of the result codes, likewise.
mod results {
    use super::bindings::ze_result_t;

    include!(concat!(env!("OUT_DIR"), "/results.rs"));
}

pub use bindings::*;
pub use functions::Functions;
pub use library::{Library, LoadError, load, load_from};
