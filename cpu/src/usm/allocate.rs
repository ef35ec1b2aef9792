//! `zeMemAllocDevice`, `zeMemAllocHost`, `zeMemAllocShared`.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::arguments::{chain, check_flags, input_structure, output, structures};
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{self, Device};
use crate::handle::resolve;
use crate::memory::{self, MAX_ALIGNMENT};
use crate::system::memory::max_allocation_size;

structures! {
    sys::ze_device_mem_alloc_desc_t = sys::ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    sys::ze_host_mem_alloc_desc_t = sys::ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    sys::ze_relaxed_allocation_limits_exp_desc_t =
        sys::ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC;
}

/// `ze_device_mem_alloc_flags_t` up to 1.17.
const DEVICE_FLAGS: u32 = 0x7;
/// `ze_host_mem_alloc_flags_t` up to 1.17.
const HOST_FLAGS: u32 = 0x1f;

/// `zeMemAllocDevice`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn device(
    context: sys::ze_context_handle_t,
    desc: *const sys::ze_device_mem_alloc_desc_t,
    size: usize,
    alignment: usize,
    device: sys::ze_device_handle_t,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    let device = device::find(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (pointer, relaxed) = unsafe { (output(pointer)?, device_desc(desc)?) };
    let request = Request {
        size,
        alignment,
        relaxed,
        device: Some(device),
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_DEVICE)?;
    Ok(())
}

/// `zeMemAllocHost`.
///
/// # Safety
/// As for [`device()`].
pub unsafe fn host(
    context: sys::ze_context_handle_t,
    desc: *const sys::ze_host_mem_alloc_desc_t,
    size: usize,
    alignment: usize,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    // SAFETY: the caller vouches for the pointers.
    let (pointer, relaxed) = unsafe { (output(pointer)?, host_desc(desc)?) };
    let request = Request {
        size,
        alignment,
        relaxed,
        device: None,
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_HOST)?;
    Ok(())
}

/// `zeMemAllocShared`; a null device is allowed.
///
/// # Safety
/// As for [`device()`].
pub unsafe fn shared(
    context: sys::ze_context_handle_t,
    device_description: *const sys::ze_device_mem_alloc_desc_t,
    host_description: *const sys::ze_host_mem_alloc_desc_t,
    size: usize,
    alignment: usize,
    device: sys::ze_device_handle_t,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    let device = (!device.is_null())
        .then(|| device::find(device))
        .transpose()?;
    // SAFETY: the caller vouches for the pointers.
    let (pointer, relaxed) = unsafe {
        (
            output(pointer)?,
            device_desc(device_description)? | host_desc(host_description)?,
        )
    };
    let request = Request {
        size,
        alignment,
        relaxed,
        device,
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_SHARED)?;
    Ok(())
}

/// Checks a device descriptor; whether it relaxes the size limit.
///
/// # Safety
/// As for [`device()`].
unsafe fn device_desc(desc: *const sys::ze_device_mem_alloc_desc_t) -> ZeResult<bool> {
    // SAFETY: the caller vouches for the pointer.
    let desc = unsafe { input_structure(desc) }?;
    check_flags(desc.flags, DEVICE_FLAGS)?;
    // SAFETY: the caller vouches for the chain.
    unsafe { relaxes(desc.pNext) }
}

/// Checks a host descriptor; whether it relaxes the size limit.
///
/// # Safety
/// As for [`device()`].
unsafe fn host_desc(desc: *const sys::ze_host_mem_alloc_desc_t) -> ZeResult<bool> {
    // SAFETY: the caller vouches for the pointer.
    let desc = unsafe { input_structure(desc) }?;
    check_flags(desc.flags, HOST_FLAGS)?;
    // SAFETY: the caller vouches for the chain.
    unsafe { relaxes(desc.pNext) }
}

/// Whether a descriptor's chain lifts the size limit. Any other structure (import, export, ray tracing) changes the
/// kind of memory, so it is an error rather than ignored.
///
/// # Safety
/// As for [`chain`].
unsafe fn relaxes(next: *const c_void) -> ZeResult<bool> {
    let mut relaxed = false;
    // SAFETY: the caller vouches for the chain.
    for link in unsafe { chain(next) } {
        let limits = link.input::<sys::ze_relaxed_allocation_limits_exp_desc_t>();
        let limits = limits.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)?;
        let lifts = sys::ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE.0;
        check_flags(limits.flags, lifts)?;
        relaxed |= limits.flags & lifts != 0;
    }
    Ok(relaxed)
}

struct Request {
    size: usize,
    alignment: usize,
    relaxed: bool,
    device: Option<&'static Device>,
}

impl Request {
    fn serve(&self, context: &Context, kind: sys::ze_memory_type_t) -> ZeResult<*mut c_void> {
        let aligned = self.alignment == 0 || self.alignment.is_power_of_two();
        ensure(
            aligned && self.alignment <= MAX_ALIGNMENT,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
        )?;
        let most = self
            .device
            .map_or_else(max_allocation_size, Device::max_allocation_size);
        let fits = self.relaxed || self.size as u64 <= most;
        ensure(self.size > 0 && fits, sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?;
        let exhausted = if kind == sys::ZE_MEMORY_TYPE_HOST {
            sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
        } else {
            sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
        };
        let request = memory::Request {
            size: self.size,
            alignment: self.alignment,
            kind,
            context: context.id(),
            host_access: kind != sys::ZE_MEMORY_TYPE_DEVICE
                || self
                    .device
                    .is_some_and(|device| device.device_type() == sys::ZE_DEVICE_TYPE_CPU),
            device: self.device.map_or(0, |device| device.handle() as u64),
            share: self.device.and_then(Device::share),
        };
        let address = memory::allocate(&request).ok_or(exhausted)?;
        Ok(address as *mut c_void)
    }
}
