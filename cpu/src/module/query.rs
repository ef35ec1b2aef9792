//! Queries about modules.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use level_zero_sys as sys;

use super::built::Module;
use crate::abi::arguments::enumerate;
use crate::abi::entry::Out;
use crate::abi::result::{ZeResult, ensure};

/// `zeModuleGetKernelNames`; the names live as long as the module.
///
/// # Safety
/// `count` must be null or valid; `names` must be null or have room for `*count` pointers.
pub unsafe fn kernel_names(
    module: Arc<Module>,
    count: *mut u32,
    names: *mut *const c_char,
) -> ZeResult {
    let all: Vec<*const c_char> = module
        .kernels
        .iter()
        .map(|(name, _)| name.as_ptr())
        .collect();
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, names, &all) }
}

/// `zeModuleGetProperties`: no module has unresolved imports.
pub fn properties(
    _: Arc<Module>,
    mut properties: Out<'_, sys::ze_module_properties_t>,
) -> ZeResult {
    properties.flags = 0;
    Ok(())
}

/// `zeModuleGetNativeBinary`.
///
/// # Safety
/// `place` must be null or have room for `*size` bytes.
pub unsafe fn native_binary(module: Arc<Module>, size: &mut usize, place: *mut u8) -> ZeResult {
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
pub fn global_pointer(
    module: Arc<Module>,
    name: &CStr,
    size: Option<&mut usize>,
    pointer: Option<&mut *mut c_void>,
) -> ZeResult {
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
pub fn function_pointer(module: Arc<Module>, name: &CStr, pointer: &mut *mut c_void) -> ZeResult {
    // OpenCL finds variables by this name as well.
    let address = module.program.function(name);
    let address = address.filter(|_| module.program.global_variable(name).is_none());
    *pointer = address.unwrap_or(0) as *mut c_void;
    ensure(
        address.is_some(),
        sys::ZE_RESULT_ERROR_INVALID_FUNCTION_NAME,
    )
}
