//! Errors of OpenCL calls, and of opening a runtime.

use std::path::PathBuf;

use opencl_sys::cl_int;
use thiserror::Error;

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
    /// A call of OpenCL itself failed.
    #[error(transparent)]
    Call(#[from] Error),
    /// Nothing was found at all.
    #[error(
        "no OpenCL runtime for the CPU is installed: `pip install intel-opencl-rt intel-cmplr-lib-rt` (dpctl brings it along) or set \
         {variable} to the path of one; tried {tried}",
        variable = super::find::VARIABLE
    )]
    Nowhere {
        /// The candidates, each with its error.
        tried: String,
    },
}
