//! The names of libraries on Linux, without versions, and what hinders Intel's.

use std::path::Path;

/// Intel's runtime for the CPU, which exports the whole API and so needs no loader.
pub const INTEL: &str = "libintelocl.so";

/// Where it may be below a folder with a library, or above one.
pub const PLACES: [&str; 1] = [""];

/// The loader of whatever OpenCL runtimes are installed.
pub const LOADER: &str = "libOpenCL.so.1";

/// SYCL.
pub const SYCL: &str = "libsycl.so";

/// Intel's runtime, below the folder of an environment.
pub const INSTALLED: &str = "lib/libintelocl.so";

/// Whether a library that was looked for by its name is not there: the dynamic linker names one that it has found with its folder.
pub fn is_absent(name: &Path, message: &str) -> bool {
    message.starts_with(&format!("{}: ", name.display()))
}

/// What Intel's runtime cannot have in its path, beside which it looks for its files: it reads the path in `/proc/self/maps` up to
/// the first space only.
pub fn hindrance(path: &Path) -> Option<&'static str> {
    let has_space = |byte: &u8| byte.is_ascii_whitespace();
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().any(has_space).then_some("a space")
}
