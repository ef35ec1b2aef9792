//! `zeMemGetAllocProperties` and `zeMemGetAddressRange`.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND;

use super::external;
use crate::abi::arguments::{self, optional_output};
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::check_external;
use crate::handle::resolve;
use crate::memory::{self, Allocation};

/// `zeMemGetAllocProperties`: a pointer that the context does not know is of type unknown. With
/// `ze_external_memory_export_fd_t` in the chain, the memory is exported.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn properties(
    context: sys::ze_context_handle_t,
    pointer: *const c_void,
    properties: *mut sys::ze_memory_allocation_properties_t,
    device: *mut sys::ze_device_handle_t,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    ensure(
        !pointer.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    // SAFETY: the caller vouches for the pointers.
    let (properties, owner) = unsafe {
        (
            arguments::output_structure(properties)?,
            optional_output(device)?,
        )
    };
    let found = find(&context, pointer);
    let (kind, id, page, device) = match &found {
        None => (sys::ZE_MEMORY_TYPE_UNKNOWN, 0, 0, ptr::null_mut()),
        Some(allocation) => (
            allocation.kind(),
            allocation.id(),
            allocation.page_size() as u64,
            allocation.device() as sys::ze_device_handle_t,
        ),
    };
    // SAFETY: the caller vouches for the chain.
    for link in unsafe { arguments::chain(properties.pNext) } {
        if let Some(export) = link.output::<sys::ze_external_memory_export_fd_t>() {
            let allocation = found.as_ref();
            let allocation = allocation.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
            check_external(export.flags)?;
            export.fd = external::export(allocation)?;
        }
    }
    properties.type_ = kind;
    properties.id = id;
    properties.pageSize = page;
    if let Some(owner) = owner {
        *owner = device;
    }
    Ok(())
}

/// `zeMemGetAddressRange`.
///
/// # Safety
/// As for [`properties`].
pub unsafe fn address_range(
    context: sys::ze_context_handle_t,
    pointer: *const c_void,
    base: *mut *mut c_void,
    size: *mut usize,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    ensure(
        !pointer.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    // SAFETY: the caller vouches for the pointers.
    let (base, size) = unsafe { (optional_output(base)?, optional_output(size)?) };
    let allocation = find(&context, pointer).ok_or(ZE_RESULT_ERROR_ADDRESS_NOT_FOUND)?;
    if let Some(base) = base {
        *base = allocation.base() as *mut c_void;
    }
    if let Some(size) = size {
        *size = allocation.size();
    }
    Ok(())
}

fn find(context: &Context, pointer: *const c_void) -> Option<Arc<Allocation>> {
    memory::find(pointer as usize).filter(|allocation| allocation.context() == context.id())
}
