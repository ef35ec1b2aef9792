//! Errors of OpenCL calls, and of opening a runtime.

use std::path::Path;

use opencl_sys::cl_int;
use thiserror::Error;

use super::find::{self, VARIABLE};

/// An OpenCL call that failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{operation} answered {code} ({})", name(*code))]
pub struct Error {
    /// The function.
    pub operation: &'static str,
    /// Its status code.
    pub code: cl_int,
}

impl Error {
    /// The error for a function's status, unless it is CL_SUCCESS.
    pub fn check(operation: &'static str, code: cl_int) -> Result<(), Self> {
        if code == opencl_sys::CL_SUCCESS {
            Ok(())
        } else {
            Err(Self { operation, code })
        }
    }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.to_string()
    }
}

/// The names of the codes that are likely here.
fn name(code: cl_int) -> &'static str {
    match code {
        opencl_sys::CL_DEVICE_NOT_FOUND => "CL_DEVICE_NOT_FOUND",
        opencl_sys::CL_DEVICE_NOT_AVAILABLE => "CL_DEVICE_NOT_AVAILABLE",
        opencl_sys::CL_OUT_OF_RESOURCES => "CL_OUT_OF_RESOURCES",
        opencl_sys::CL_OUT_OF_HOST_MEMORY => "CL_OUT_OF_HOST_MEMORY",
        opencl_sys::CL_BUILD_PROGRAM_FAILURE => "CL_BUILD_PROGRAM_FAILURE",
        opencl_sys::CL_INVALID_VALUE => "CL_INVALID_VALUE",
        opencl_sys::CL_INVALID_BINARY => "CL_INVALID_BINARY",
        opencl_sys::CL_INVALID_BUILD_OPTIONS => "CL_INVALID_BUILD_OPTIONS",
        opencl_sys::CL_INVALID_PROGRAM => "CL_INVALID_PROGRAM",
        opencl_sys::CL_INVALID_PROGRAM_EXECUTABLE => "CL_INVALID_PROGRAM_EXECUTABLE",
        opencl_sys::CL_INVALID_KERNEL_NAME => "CL_INVALID_KERNEL_NAME",
        opencl_sys::CL_INVALID_KERNEL => "CL_INVALID_KERNEL",
        opencl_sys::CL_INVALID_ARG_INDEX => "CL_INVALID_ARG_INDEX",
        opencl_sys::CL_INVALID_ARG_VALUE => "CL_INVALID_ARG_VALUE",
        opencl_sys::CL_INVALID_ARG_SIZE => "CL_INVALID_ARG_SIZE",
        opencl_sys::CL_INVALID_KERNEL_ARGS => "CL_INVALID_KERNEL_ARGS",
        opencl_sys::CL_INVALID_WORK_GROUP_SIZE => "CL_INVALID_WORK_GROUP_SIZE",
        opencl_sys::CL_INVALID_WORK_ITEM_SIZE => "CL_INVALID_WORK_ITEM_SIZE",
        opencl_sys::CL_INVALID_GLOBAL_WORK_SIZE => "CL_INVALID_GLOBAL_WORK_SIZE",
        opencl_sys::CL_INVALID_GLOBAL_OFFSET => "CL_INVALID_GLOBAL_OFFSET",
        opencl_sys::CL_INVALID_SPEC_ID => "CL_INVALID_SPEC_ID",
        _ => "see the OpenCL specification",
    }
}

/// Why a library is not the OpenCL runtime.
#[derive(Clone, Debug)]
pub struct Unusable {
    /// The reason, with the library's path.
    pub why: String,
    /// Whether it is a runtime for the CPU, which fails.
    pub fails: bool,
}

/// What brings an OpenCL runtime for the CPU, and the mathematical library that it needs.
const INSTALL: &str = "pip install intel-opencl-rt intel-cmplr-lib-rt";

/// The error of a search, of those of the candidates: those that are a runtime for the CPU count before others. `is_chosen`: the
/// only candidate is the user's.
pub fn not_found(tried: &[Unusable], is_chosen: bool) -> String {
    let any_fails = tried.iter().any(|it| it.fails);
    let told = tried.iter().filter(|it| it.fails || !any_fails);
    let told: Vec<_> = told.map(|it| it.why.as_str()).collect();
    let told = told.join("; ");
    match (any_fails, is_chosen) {
        (true, _) => format!("the OpenCL runtime for the CPU does not work: {told}"),
        (_, true) => format!("{VARIABLE} names no OpenCL runtime for the CPU: {told}"),
        _ => format!(
            "no OpenCL runtime for the CPU is installed: `{INSTALL}` (dpnp brings both along) or set {VARIABLE} to the path of \
             one; tried {told}"
        ),
    }
}

/// The advice for a library at a path that hinders it.
pub fn of_path(path: &Path) -> String {
    find::hindrance(path).map_or_else(String::new, |what| {
        format!(
            "; Intel's OpenCL runtime does not work at a path with {what}: move the environment, or install a second one at a \
             path without one (`{INSTALL}`), and set {VARIABLE} to its {}",
            find::INSTALLED
        )
    })
}

#[cfg(test)]
mod tests;
