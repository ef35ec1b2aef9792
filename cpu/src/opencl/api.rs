//! The functions of OpenCL that are used, looked up in a library by name.

use std::error::Error as _;
use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

use libloading::Library;
use opencl_sys::cl_function_types as of;
use opencl_sys::{cl_device_id, cl_int, cl_platform_id, cl_program};

use super::error::Unusable;
use super::find;
use crate::system::library;

/// `clGetDeviceFunctionPointerINTEL`: the address of a program's function.
pub type FunctionPointer =
    unsafe extern "C" fn(cl_device_id, cl_program, *const std::ffi::c_char, *mut u64) -> cl_int;

/// `clGetDeviceGlobalVariablePointerINTEL`: the address and the size in bytes of a program's global variable.
pub type GlobalVariablePointer = unsafe extern "C" fn(
    cl_device_id,
    cl_program,
    *const std::ffi::c_char,
    *mut usize,
    *mut *mut c_void,
) -> cl_int;

/// The pointer in one of the optional function types of `opencl-sys`.
pub trait Optional {
    /// The pointer's type.
    type Function;
}

impl<T> Optional for Option<T> {
    type Function = T;
}

/// The error of opening a library, with the dynamic linker's message without the path that was opened: the reason, or the
/// missing dependency.
fn not_opened(path: &Path, error: &libloading::Error) -> Unusable {
    let message = error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string);
    let own = message.strip_prefix(&format!("{}: ", path.display()));
    let is_missing = if path.parent() == Some(Path::new("")) {
        find::is_absent(path, &message)
    } else {
        !path.exists()
    };
    Unusable {
        why: format!("{}: {}", path.display(), own.unwrap_or(&message)),
        fails: !is_missing,
    }
}

macro_rules! functions {
    ($($function:ident: $kind:ident),+ $(,)?) => {
        /// Every function that is used; opening fails when one is missing.
        #[allow(non_snake_case)]
        pub struct Api {
            $(pub $function: <of::$kind as Optional>::Function,)+
            /// Keeps the functions loaded.
            _library: Library,
            path: PathBuf,
        }

        impl Api {
            /// Opens `path`, which may be a bare name for the dynamic linker to find.
            pub fn open(path: &Path) -> Result<Self, Unusable> {
                let path = path.to_owned();
                // SAFETY: the initialisers of an OpenCL library have no preconditions.
                let library = unsafe { Library::new(&path) };
                let library = library.map_err(|error| not_opened(&path, &error))?;
                Ok(Self {
                    $($function: {
                        // SAFETY: opencl-sys gives the function of this name this type.
                        let found = unsafe { library.get::<<of::$kind as Optional>::Function>(stringify!($function)) };
                        *found.map_err(|_| Unusable {
                            why: format!("{} has no function {}", path.display(), stringify!($function)),
                            fails: false,
                        })?
                    },)+
                    _library: library,
                    path,
                })
            }
        }
    };
}

functions! {
    clGetPlatformIDs: clGetPlatformIDs_t,
    clGetDeviceIDs: clGetDeviceIDs_t,
    clGetDeviceInfo: clGetDeviceInfo_t,
    clGetExtensionFunctionAddressForPlatform: clGetExtensionFunctionAddressForPlatform_t,
    clCreateContext: clCreateContext_t,
    clCreateProgramWithIL: clCreateProgramWithIL_t,
    clCreateProgramWithBinary: clCreateProgramWithBinary_t,
    clSetProgramSpecializationConstant: clSetProgramSpecializationConstant_t,
    clBuildProgram: clBuildProgram_t,
    clCompileProgram: clCompileProgram_t,
    clLinkProgram: clLinkProgram_t,
    clGetProgramInfo: clGetProgramInfo_t,
    clGetProgramBuildInfo: clGetProgramBuildInfo_t,
    clReleaseProgram: clReleaseProgram_t,
    clCreateKernel: clCreateKernel_t,
    clCloneKernel: clCloneKernel_t,
    clSetKernelArg: clSetKernelArg_t,
    clSetKernelExecInfo: clSetKernelExecInfo_t,
    clGetKernelWorkGroupInfo: clGetKernelWorkGroupInfo_t,
    clGetKernelSubGroupInfo: clGetKernelSubGroupInfo_t,
    clReleaseKernel: clReleaseKernel_t,
    clGetSupportedImageFormats: clGetSupportedImageFormats_t,
    clCreateBuffer: clCreateBuffer_t,
    clCreateImage: clCreateImage_t,
    clReleaseMemObject: clReleaseMemObject_t,
    clCreateSamplerWithProperties: clCreateSamplerWithProperties_t,
    clReleaseSampler: clReleaseSampler_t,
    clCreateCommandQueueWithProperties: clCreateCommandQueueWithProperties_t,
    clEnqueueNDRangeKernel: clEnqueueNDRangeKernel_t,
    clFlush: clFlush_t,
    clWaitForEvents: clWaitForEvents_t,
    clSetEventCallback: clSetEventCallback_t,
    clGetEventProfilingInfo: clGetEventProfilingInfo_t,
    clReleaseEvent: clReleaseEvent_t,
}

impl Api {
    /// Where the library came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The library's file, where the path is a bare name, too.
    pub fn file(&self) -> Option<PathBuf> {
        library::path_of(self.clCreateContext as usize)
    }

    /// The address of a platform's extension function.
    ///
    /// # Safety
    /// `F` is the pointer type that the extension gives the function `name`.
    pub unsafe fn extension<F: Copy>(&self, platform: cl_platform_id, name: &CStr) -> Option<F> {
        // SAFETY: `platform` came from this library, and the name ends in a null.
        let address =
            unsafe { (self.clGetExtensionFunctionAddressForPlatform)(platform, name.as_ptr()) };
        assert_eq!(size_of::<F>(), size_of_val(&address), "F is not a pointer");
        // SAFETY: as the caller promises; a null address is no function.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_no_runtime_that_fails() {
        for path in ["none.so.1", "/nowhere/none.so.1"] {
            let error = Api::open(Path::new(path)).err().map(|it| it.fails);
            assert_eq!(error, Some(false), "{path}");
        }
    }
}
