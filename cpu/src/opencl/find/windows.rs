//! The names of libraries on Windows.

/// Intel's runtime for the CPU, which exports the whole API and so needs no loader.
pub const INTEL: &str = "intelocl64.dll";

/// The loader of whatever OpenCL runtimes are installed.
pub const LOADER: &str = "OpenCL.dll";

/// SYCL.
pub const SYCL: &str = "sycl9.dll";
