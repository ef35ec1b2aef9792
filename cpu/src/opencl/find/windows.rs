//! The names of libraries on Windows, and what hinders Intel's.

use std::path::Path;

/// Intel's runtime for the CPU, which exports the whole API and so needs no loader.
pub const INTEL: &str = "intelocl64.dll";

/// Where it may be below a folder with a library, or above one: wheels put it into a folder of the environment.
pub const PLACES: [&str; 2] = ["", "Library\\bin"];

/// The loader of whatever OpenCL runtimes are installed.
pub const LOADER: &str = "OpenCL.dll";

/// SYCL.
pub const SYCL: &str = "sycl9.dll";

/// Intel's runtime, below the folder of an environment.
pub const INSTALLED: &str = "Library\\bin\\intelocl64.dll";

/// Whether a library that was looked for by its name is not there, or not with all that it needs: that is one error,
/// `ERROR_MOD_NOT_FOUND`.
pub fn is_absent(_name: &Path, message: &str) -> bool {
    message.ends_with("(os error 126)")
}

/// What Intel's runtime cannot have in its path, beside which it looks for its files: it mixes the ANSI code page with UTF-8.
pub fn hindrance(path: &Path) -> Option<&'static str> {
    let is_other = !path.as_os_str().as_encoded_bytes().is_ascii();
    is_other.then_some("a character that ASCII lacks")
}
