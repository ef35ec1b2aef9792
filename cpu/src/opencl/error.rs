//! Errors of OpenCL calls, and of opening a runtime.

use std::path::{Path, PathBuf};

use opencl_sys::cl_int;
use thiserror::Error;

use super::find::VARIABLE;

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

/// Why there is no OpenCL runtime to build and run kernels with.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// There is no such file.
    #[error("{}: {why}", path.display())]
    Missing {
        /// The path that was opened.
        path: PathBuf,
        /// The dynamic linker's message.
        why: String,
    },
    /// The file was found, and is not usable.
    #[error("{}: {why}", path.display())]
    Library {
        /// The path that was opened.
        path: PathBuf,
        /// The dynamic linker's message.
        why: String,
    },
    /// The library opened, and lacks a function of OpenCL 2.1.
    #[error("{} has no function {function}", path.display())]
    Function {
        /// The path that was opened.
        path: PathBuf,
        /// The function's name.
        function: &'static str,
    },
    /// No platform of the library has a CPU that takes SPIR-V and the host's pointers.
    #[error("{} offers no CPU device that takes SPIR-V and shared memory", path.display())]
    Device {
        /// The path that was opened.
        path: PathBuf,
    },
    /// The library has such a CPU, and makes no context on it.
    #[error("{}: {error}{}", path.display(), of_a_space(path))]
    Context {
        /// The file, without symbolic links.
        path: PathBuf,
        /// The call that failed.
        error: Error,
    },
    /// Nothing was found at all.
    #[error(
        "no OpenCL runtime for the CPU is installed: `{INSTALL}` (dpnp brings both along) or set {VARIABLE} to the path of one; \
         tried {tried}"
    )]
    Nowhere {
        /// The candidates, each with its error.
        tried: String,
    },
    /// The user's choice is none.
    #[error("{VARIABLE} names no OpenCL runtime for the CPU: {tried}")]
    WrongChoice {
        /// The path, with its error.
        tried: String,
    },
    /// One was found, and fails.
    #[error("the OpenCL runtime for the CPU does not work: {failed}")]
    Fails {
        /// The libraries, each with its error.
        failed: String,
    },
}

/// What brings an OpenCL runtime for the CPU, and the mathematical library that it needs.
const INSTALL: &str = "pip install intel-opencl-rt intel-cmplr-lib-rt";

impl OpenError {
    /// The error of a search, of the errors of the candidates: those that are a runtime for the CPU count before others.
    /// `is_chosen`: the only candidate is the user's.
    pub fn of_all(errors: &[Self], is_chosen: bool) -> Self {
        let fails = |error: &&Self| matches!(error, Self::Library { .. } | Self::Context { .. });
        let failed: Vec<String> = errors.iter().filter(fails).map(Self::to_string).collect();
        if !failed.is_empty() {
            return Self::Fails {
                failed: failed.join("; "),
            };
        }
        let tried: Vec<String> = errors.iter().map(Self::to_string).collect();
        let tried = tried.join("; ");
        match is_chosen {
            true => Self::WrongChoice { tried },
            false => Self::Nowhere { tried },
        }
    }
}

/// The advice for a library whose path has a space: Intel's runtime looks for its files beside itself, and reads its own path
/// in `/proc/self/maps` up to the first space only.
fn of_a_space(path: &Path) -> String {
    let has_space = |byte: &u8| byte.is_ascii_whitespace();
    if !path.as_os_str().as_encoded_bytes().iter().any(has_space) {
        return String::new();
    }
    format!(
        "; Intel's OpenCL runtime does not work at a path with a space: move the environment, or install a second one at a path \
         without a space (`{INSTALL}`), and set {VARIABLE} to its lib/libintelocl.so"
    )
}

#[cfg(test)]
mod tests;
