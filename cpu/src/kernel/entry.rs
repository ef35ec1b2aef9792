//! The entry points that create, configure and destroy kernels.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use level_zero_sys as sys;
use zeusm_process::ForkSafe;

use super::state::Kernel;
use crate::abi::arguments::check_flags;
use crate::abi::entry::{In, check};
use crate::abi::result::{ZeResult, described};
use crate::handle::{getters, hand_out};
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
pub fn create(
    module: Arc<Module>,
    desc: In<'_, sys::ze_kernel_desc_t>,
    kernel: &mut sys::ze_kernel_handle_t,
) -> ZeResult {
    check_flags(desc.flags, CREATE_FLAGS)?;
    // SAFETY: the text belongs to the structure, which is valid.
    let name: &CStr = unsafe { check(desc.pKernelName) }?;
    let found = name.to_str().ok().and_then(|name| module.kernel(name));
    let unknown = sys::ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    let Some((name, info)) = found else {
        let name = name.to_string_lossy();
        let text = format_args!("the module has no kernel {name}");
        return Err(described(unknown, text));
    };
    let compiled = module.program.kernel(name);
    let compiled = compiled.map_err(|error| described(unknown, error))?;
    // Before local arguments have a size, which would count.
    let limits = compiled.info();
    // Not every type has a default value; without one, the runtime only suggests no group size.
    let _ = compiled.preset(&preset(&info.arguments));
    let made = Kernel {
        limits,
        info: info.clone(),
        compiled: Arc::new(compiled),
        settings: ForkSafe::default(),
        _module: module,
    };
    hand_out(made, kernel)
}

/// A default value for each argument, up to the first one that has none.
fn preset(arguments: &[Argument]) -> Vec<Value<'static>> {
    /// The default value of arguments up to this size.
    static ZEROS: [u8; 1024] = [0; 1024];
    let values = arguments.iter().map_while(|argument| match argument {
        Argument::Pointer => Some(Value::Pointer(std::ptr::null())),
        Argument::Local => Some(Value::Local(1)),
        Argument::Value(size) => ZEROS.get(..(*size)?).map(Value::Bytes),
        Argument::Image(_) | Argument::Sampler | Argument::Opaque => None,
    });
    values.collect()
}

/// `zeKernelSetArgumentValue`.
///
/// # Safety
/// `value` must be null or refer to `size` bytes, except for local memory, where it is ignored.
pub unsafe fn set_argument(
    kernel: Arc<Kernel>,
    index: u32,
    size: usize,
    value: *const c_void,
) -> ZeResult {
    let arguments = &mut kernel.state().arguments;
    // SAFETY: the caller vouches for the value.
    unsafe { Arc::make_mut(arguments).set(&kernel.info, index as usize, Some(size), value) }
}

/// `zeKernelSetIndirectAccess`: kernels can access all memory anyway; a blocking free waits for launches with any flag.
pub fn set_indirect_access(kernel: Arc<Kernel>, wanted: u32) -> ZeResult {
    check_flags(wanted, INDIRECT_FLAGS)?;
    kernel.state().indirect = wanted;
    Ok(())
}

getters! { Kernel {
    /// `zeKernelGetIndirectAccess`.
    indirect_access: u32 = |kernel| Ok(kernel.state().indirect);
}}

/// `zeKernelSetCacheConfig`: a processor's caches have no such setting, so the flags are only checked.
pub fn set_cache_config(_: Arc<Kernel>, wanted: u32) -> ZeResult {
    check_flags(wanted, CACHE_FLAGS)
}

/// `zeKernelSchedulingHintExp`: the OpenCL runtime schedules work-groups by itself, so the hint is only checked, and
/// `ze_scheduling_hint_exp_properties_t` lists none.
pub fn set_scheduling_hint(
    _: Arc<Kernel>,
    hint: In<'_, sys::ze_scheduling_hint_exp_desc_t>,
) -> ZeResult {
    check_flags(hint.flags, SCHEDULING_HINTS)
}
