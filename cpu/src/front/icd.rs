//! What OpenCL's loader looks for in a library: the platform, and the table of its functions.

use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;
use std::ptr;

use opencl_sys as cl;
use opencl_sys::cl_icd::_cl_icd_dispatch as Dispatch;
use opencl_sys::{cl_function_types as of, cl_int, cl_platform_id, cl_uint};

use super::object::{FUNCTIONS, Object, Table};
use super::platform::{self, FrontDevice, Platform};
use super::program::{self, Context, Program};

/// A function that returns a code and that the front does not have: it compiles and executes nothing.
extern "C" fn refused() -> cl_int {
    cl::CL_INVALID_OPERATION
}

/// A function that returns an object or an address and that the front does not have.
extern "C" fn none() -> *mut c_void {
    ptr::null_mut()
}

/// The table: functions that the front has, with their types; those that return an object; all others return a code.
macro_rules! table {
    ($($name:ident: $kind:ident = $function:path,)* ; $($object:ident)*) => {{
        let mut table = [refused as *const (); FUNCTIONS];
        $(table[offset_of!(Dispatch, $object) / size_of::<*const ()>()] = none as *const ();)*
        $(
            let _: of::$kind = Some($function);
            table[offset_of!(Dispatch, $name) / size_of::<*const ()>()] = $function as *const ();
        )*
        Table(table)
    }};
}

static TABLE: Table = table! {
    clGetPlatformIDs: clGetPlatformIDs_t = platforms,
    clGetPlatformInfo: clGetPlatformInfo_t = Object::<Platform>::info,
    clGetDeviceIDs: clGetDeviceIDs_t = platform::device_ids,
    clGetDeviceInfo: clGetDeviceInfo_t = FrontDevice::info,
    clCreateSubDevices: clCreateSubDevices_t = platform::sub_devices,
    clRetainDevice: clRetainDevice_t = platform::keep_device,
    clReleaseDevice: clReleaseDevice_t = platform::keep_device,
    clCreateContext: clCreateContext_t = program::create_context,
    clRetainContext: clRetainContext_t = Context::retain,
    clReleaseContext: clReleaseContext_t = Context::release,
    clGetContextInfo: clGetContextInfo_t = Context::info,
    clCreateProgramWithSource: clCreateProgramWithSource_t = program::create_program,
    clRetainProgram: clRetainProgram_t = Program::retain,
    clReleaseProgram: clReleaseProgram_t = Program::release,
    clBuildProgram: clBuildProgram_t = program::build,
    clGetProgramInfo: clGetProgramInfo_t = Program::info,
    clGetProgramBuildInfo: clGetProgramBuildInfo_t = program::build_info,
    ;
    clCreateContextFromType clCreateCommandQueue clCreateBuffer clCreateImage2D clCreateImage3D clCreateSampler
    clCreateProgramWithBinary clCreateKernel clEnqueueMapBuffer clEnqueueMapImage clGetExtensionFunctionAddress
    clCreateFromGLBuffer clCreateFromGLTexture2D clCreateFromGLTexture3D clCreateFromGLRenderbuffer clCreateSubBuffer
    clCreateUserEvent clCreateEventFromGLsyncKHR clCreateImage clCreateProgramWithBuiltInKernels clLinkProgram
    clGetExtensionFunctionAddressForPlatform clCreateFromGLTexture clCreateFromEGLImageKHR clCreateEventFromEGLSyncKHR
    clCreateCommandQueueWithProperties clCreatePipe clSVMAlloc clCreateSamplerWithProperties clCloneKernel
    clCreateProgramWithIL clCreateBufferWithProperties clCreateImageWithProperties
};

static PLATFORM: Object<Platform> = Object {
    table: &TABLE,
    value: Platform::new(),
};

/// `clIcdGetPlatformIDsKHR`: one platform.
///
/// # Safety
/// Pointers are null or valid, as OpenCL demands.
unsafe extern "C" fn platforms(
    room: cl_uint,
    places: *mut cl_platform_id,
    count: *mut cl_uint,
) -> cl_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        if let Some(count) = count.as_mut() {
            *count = 1;
        }
        if let Some(place) = places.as_mut().filter(|_| room > 0) {
            *place = PLATFORM.handle();
        }
    }
    cl::CL_SUCCESS
}

/// The function by which OpenCL's loader finds the platform.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetExtensionFunctionAddress(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller vouches for the string.
    let is_platforms =
        !name.is_null() && unsafe { CStr::from_ptr(name) } == c"clIcdGetPlatformIDsKHR";
    if is_platforms {
        platforms as *mut c_void
    } else {
        ptr::null_mut()
    }
}
