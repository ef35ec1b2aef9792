//! Queries about modules.

use std::ffi::{CStr, c_char, c_void};

use level_zero_sys as sys;

use super::built::Module;
use crate::abi::arguments::{enumerate, optional_output, output, output_structure};
use crate::abi::result::{ZeResult, ensure};
use crate::handle::resolve;

/// `zeModuleGetKernelNames`; the names live as long as the module.
///
/// # Safety
/// `count` must be null or valid; `names` must be null or have room for `*count` pointers.
pub unsafe fn kernel_names(
    module: sys::ze_module_handle_t,
    count: *mut u32,
    names: *mut *const c_char,
) -> ZeResult {
    let module = resolve::<Module>(module)?;
    let all: Vec<*const c_char> = module
        .kernels
        .iter()
        .map(|(name, _)| name.as_ptr())
        .collect();
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, names, &all) }
}

/// `zeModuleGetProperties`: no module has unresolved imports.
///
/// # Safety
/// `properties` must be null or valid.
pub unsafe fn properties(
    module: sys::ze_module_handle_t,
    properties: *mut sys::ze_module_properties_t,
) -> ZeResult {
    resolve::<Module>(module)?;
    // SAFETY: the caller vouches for the pointer.
    unsafe { output_structure(properties) }?.flags = 0;
    Ok(())
}

/// `zeModuleGetNativeBinary`.
///
/// # Safety
/// `size` must be null or valid; `place` must be null or have room for `*size` bytes.
pub unsafe fn native_binary(
    module: sys::ze_module_handle_t,
    size: *mut usize,
    place: *mut u8,
) -> ZeResult {
    let module = resolve::<Module>(module)?;
    // SAFETY: the caller vouches for the pointer.
    let size = unsafe { output(size) }?;
    let native = module
        .to_native()
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    let room = *size;
    *size = native.len();
    if place.is_null() {
        return Ok(());
    }
    ensure(room >= native.len(), sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
    // SAFETY: there is room for all bytes, and the caller's buffer does not overlap with ours.
    unsafe { std::ptr::copy_nonoverlapping(native.as_ptr(), place, native.len()) };
    Ok(())
}

/// `zeModuleGetGlobalPointer`.
///
/// # Safety
/// `name` must be null or end in a null; `size` and `pointer` must be null or valid.
pub unsafe fn global_pointer(
    module: sys::ze_module_handle_t,
    name: *const c_char,
    size: *mut usize,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let module = resolve::<Module>(module)?;
    ensure(!name.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    // SAFETY: the caller vouches for the pointers.
    let (name, size, pointer) = unsafe {
        (
            CStr::from_ptr(name),
            optional_output(size)?,
            optional_output(pointer)?,
        )
    };
    let found = module.program.global_variable(name);
    let (address, bytes) = found.ok_or(sys::ZE_RESULT_ERROR_INVALID_GLOBAL_NAME)?;
    if let Some(size) = size {
        *size = bytes;
    }
    if let Some(pointer) = pointer {
        *pointer = address;
    }
    Ok(())
}

/// `zeModuleGetFunctionPointer`, of a function that kernels can call by its address.
///
/// # Safety
/// `name` must be null or end in a null; `pointer` must be null or valid.
pub unsafe fn function_pointer(
    module: sys::ze_module_handle_t,
    name: *const c_char,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let module = resolve::<Module>(module)?;
    ensure(!name.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    // SAFETY: the caller vouches for the pointers.
    let (name, pointer) = unsafe { (CStr::from_ptr(name), output(pointer)?) };
    // OpenCL finds variables by this name as well.
    let address = module.program.function(name);
    let address = address.filter(|_| module.program.global_variable(name).is_none());
    *pointer = address.unwrap_or(0) as *mut c_void;
    ensure(
        address.is_some(),
        sys::ZE_RESULT_ERROR_INVALID_FUNCTION_NAME,
    )
}
