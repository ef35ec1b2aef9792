//! The names of libraries on Linux, without versions.

/// Intel's runtime for the CPU, which exports the whole API and so needs no loader.
pub const INTEL: &str = "libintelocl.so";

/// Where it may be below a folder with a library, or above one.
pub const PLACES: [&str; 1] = [""];

/// The loader of whatever OpenCL runtimes are installed.
pub const LOADER: &str = "libOpenCL.so.1";

/// SYCL.
pub const SYCL: &str = "libsycl.so";
