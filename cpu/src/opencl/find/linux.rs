//! The names of libraries on Linux, without versions.

/// Intel's runtime for the CPU, which exports the whole API and so needs no loader.
pub const INTEL: &str = "libintelocl.so";

/// The loader of whatever OpenCL runtimes are installed.
pub const LOADER: &str = "libOpenCL.so.1";

/// SYCL.
pub const SYCL: &str = "libsycl.so";
