//! Raw Level Zero bindings: the types of the installed headers, and the functions of a library that is loaded at run time.
//!
//! Only [`extensions`] and the chains of [`Extends`] are handwritten; bindgen generates the rest from `ze_api.h` and `ze_ddi.h`
//! of the build machine. No library is linked: [`load`] opens the system's loader, [`load_from`] any library with the Level
//! Zero API. Every function is an `Option`, because the library may be older than the headers.
//!
//! ```no_run
//! use level_zero_sys as sys;
//!
//! let library = sys::load()?;
//! let init = library.zeInit.ok_or_else(|| library.missing("zeInit"))?;
//! // SAFETY: zeInit only takes flags; 0 selects all drivers.
//! let result = unsafe { init(0) };
//! assert_eq!(result, sys::ZE_RESULT_SUCCESS, "{:?}", result.name());
//! # Ok::<(), sys::LoadError>(())
//! ```
//!
//! Source: the Level Zero specification, "Core programming guide" and "Core API".
#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

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
mod bindings;
mod chain;
pub mod extensions;
#[allow(non_snake_case)]
mod functions;
mod library;
#[cfg(unix)]
#[path = "unix.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows.rs"]
mod platform;

include!(concat!(env!("OUT_DIR"), "/declarations.rs"));

pub use bindings::*;
pub use chain::{Extends, Head, Structure, next, structure};
pub use functions::Functions;
pub use library::{Library, LoadError, load, load_from};
