//! The entry points that create, configure and destroy kernels.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use level_zero_sys as sys;
use zeusm_process::ForkSafe;

use super::arguments::Arguments;
use super::state::{Kernel, Settings, State};
use crate::abi::arguments::{check_flags, input_structure, output};
use crate::abi::result::describe;
use crate::abi::result::{ZeResult, ensure};
use crate::handle::{getters, register, resolve, retire};
use crate::module::Module;
use crate::opencl::Value;
use crate::spirv::Argument;

/// Force and explicit residency.
const CREATE_FLAGS: u32 = 0x3;
/// Host, device and shared allocations.
const INDIRECT_FLAGS: u32 = 0x7;
/// Large local memory and large data cache.
const CACHE_FLAGS: u32 = 0x3;
/// Oldest first, round robin and stall-based round robin.
const SCHEDULING_HINTS: u32 = 0x7;

/// `zeKernelCreate`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    module: sys::ze_module_handle_t,
    desc: *const sys::ze_kernel_desc_t,
    kernel: *mut sys::ze_kernel_handle_t,
) -> ZeResult {
    let module = resolve::<Module>(module)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, kernel) = unsafe { (input_structure(desc)?, output(kernel)?) };
    check_flags(desc.flags, CREATE_FLAGS)?;
    ensure(
        !desc.pKernelName.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    // SAFETY: the caller vouches for a string.
    let name = unsafe { CStr::from_ptr(desc.pKernelName) };
    let found = name.to_str().ok().and_then(|name| module.kernel(name));
    let Some((name, info)) = found else {
        describe(&format!(
            "the module has no kernel {}",
            name.to_string_lossy()
        ));
        return Err(sys::ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
    };
    let compiled = module.program().kernel(name).map_err(|error| {
        describe(&error.to_string());
        sys::ZE_RESULT_ERROR_INVALID_KERNEL_NAME
    })?;
    // Before local arguments have a size, which would count.
    let limits = compiled.info();
    // Not every type has a default value; without one, the runtime only suggests no group size.
    let _ = compiled.preset(&preset(&info.arguments));
    let state = State {
        arguments: Arc::new(Arguments::unset(info.arguments.len())),
        group: info.required_group_size.unwrap_or([1; 3]),
        offset: [0; 3],
        indirect: 0,
        suggested: None,
    };
    let info = info.clone();
    module.add_kernel();
    *kernel = register(Arc::new(Kernel {
        limits,
        module,
        info,
        compiled: Arc::new(compiled),
        settings: ForkSafe::new(Settings::new(state)),
    }))?;
    Ok(())
}

/// A default value for each argument, up to the first one that has none.
fn preset(arguments: &[Argument]) -> Vec<Value<'static>> {
    /// The default value of arguments up to this size.
    static ZEROS: [u8; 1024] = [0; 1024];
    let values = arguments.iter().map_while(|argument| match argument {
        Argument::Pointer => Some(Value::Pointer(std::ptr::null())),
        Argument::Local => Some(Value::Local(1)),
        Argument::Value(size) => ZEROS
            .get(..usize::try_from((*size)?).ok()?)
            .map(Value::Bytes),
        Argument::Image(_) | Argument::Sampler | Argument::Opaque(_) => None,
    });
    values.collect()
}

/// `zeKernelSetArgumentValue`.
///
/// # Safety
/// `value` must be null or refer to `size` bytes, except for local memory, where it is ignored.
pub unsafe fn set_argument(
    kernel: sys::ze_kernel_handle_t,
    index: u32,
    size: usize,
    value: *const c_void,
) -> ZeResult {
    let kernel = resolve::<Kernel>(kernel)?;
    // SAFETY: the caller vouches for the value.
    unsafe { kernel.set_argument(index as usize, Some(size), value) }
}

/// `zeKernelDestroy`; appended launches are not affected.
pub fn destroy(kernel: sys::ze_kernel_handle_t) -> ZeResult {
    retire::<Kernel>(kernel).map(drop)
}

/// `zeKernelSetIndirectAccess`: kernels can access all memory anyway; a blocking free waits for launches with any flag.
pub fn set_indirect_access(kernel: sys::ze_kernel_handle_t, wanted: u32) -> ZeResult {
    let kernel = resolve::<Kernel>(kernel)?;
    check_flags(wanted, INDIRECT_FLAGS)?;
    kernel.state().indirect = wanted;
    Ok(())
}

getters! { Kernel {
    /// `zeKernelGetIndirectAccess`.
    indirect_access: u32 = |kernel| Ok(kernel.state().indirect);
}}

/// `zeKernelSetCacheConfig`: a processor's caches have no such setting, so the flags are only checked.
pub fn set_cache_config(kernel: sys::ze_kernel_handle_t, wanted: u32) -> ZeResult {
    resolve::<Kernel>(kernel)?;
    check_flags(wanted, CACHE_FLAGS)
}

/// `zeKernelSchedulingHintExp`: the OpenCL runtime schedules work-groups by itself, so the hint is only checked, and
/// `ze_scheduling_hint_exp_properties_t` lists none.
///
/// # Safety
/// `hint` must be null, misaligned or valid.
pub unsafe fn set_scheduling_hint(
    kernel: sys::ze_kernel_handle_t,
    hint: *mut sys::ze_scheduling_hint_exp_desc_t,
) -> ZeResult {
    resolve::<Kernel>(kernel)?;
    // SAFETY: the caller vouches for the pointer.
    let hint = unsafe { input_structure(hint.cast_const()) }?;
    check_flags(hint.flags, SCHEDULING_HINTS)
}
