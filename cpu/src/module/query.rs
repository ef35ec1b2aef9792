//! Queries about modules.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use level_zero_sys as sys;

use super::built::Module;
use crate::abi::entry::{Bytes, Out, Room};
use crate::abi::result::{ZeResult, ensure};

/// `zeModuleGetKernelNames`; the names live as long as the module.
pub fn kernel_names(module: Arc<Module>, names: Room<'_, *const c_char>) -> ZeResult {
    let all = module.kernels.iter().map(|(name, _)| name.as_ptr());
    names.fill(&all.collect::<Vec<_>>())
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
pub fn native_binary(module: Arc<Module>, place: Bytes<'_>) -> ZeResult {
    let native = module
        .to_native()
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    place.write(&native)
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
