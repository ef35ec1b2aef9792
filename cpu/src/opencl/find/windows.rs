//! The names of libraries on Windows.

/// Intel's runtime for the CPU, which exports the whole API and so needs no loader.
pub const INTEL: &str = "intelocl64.dll";

/// Where it may be below a folder with a library, or above one: wheels put it into a folder of the environment.
pub const PLACES: [&str; 2] = ["", "Library\\bin"];

/// The loader of whatever OpenCL runtimes are installed.
pub const LOADER: &str = "OpenCL.dll";

/// SYCL.
pub const SYCL: &str = "sycl9.dll";
