//! Identification of the library that a call comes from.

use std::ffi::c_void;

/// The module of the library under test.
#[allow(dead_code, reason = "the fault driver uses a part of the module")]
#[path = "../../../src/shared_library/linux.rs"]
pub(crate) mod shared_library;

/// The prefixes of the file names of SYCL's runtime and of its Level Zero adapters.
const SYCL: [&str; 3] = ["libsycl", "libur_", "libpi_"];

/// Whether the code at `caller` belongs to SYCL.
pub(crate) fn is_sycl(caller: *const c_void) -> bool {
    let file = shared_library::path_of(caller);
    let name = file.as_ref().and_then(|file| file.file_name()?.to_str());
    name.is_some_and(|name| SYCL.iter().any(|prefix| name.starts_with(prefix)))
}
