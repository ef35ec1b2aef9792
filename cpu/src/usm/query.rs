//! `zeMemGetAllocProperties` and `zeMemGetAddressRange`.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND;

use super::external;
use crate::abi::entry::{Address, Out};
use crate::abi::result::ZeResult;
use crate::context::Context;
use crate::device::check_external;
use crate::memory::{self, Allocation};

/// `zeMemGetAllocProperties`: a pointer that the context does not know is of type unknown. With
/// `ze_external_memory_export_fd_t` in the chain, the memory is exported.
pub fn properties(
    context: Arc<Context>,
    Address(pointer): Address,
    mut properties: Out<'_, sys::ze_memory_allocation_properties_t>,
    owner: Option<&mut sys::ze_device_handle_t>,
) -> ZeResult {
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
    for link in properties.chain() {
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
pub fn address_range(
    context: Arc<Context>,
    Address(pointer): Address,
    base: Option<&mut *mut c_void>,
    size: Option<&mut usize>,
) -> ZeResult {
    let allocation = find(&context, pointer).ok_or(ZE_RESULT_ERROR_ADDRESS_NOT_FOUND)?;
    if let Some(base) = base {
        *base = allocation.base() as *mut c_void;
    }
    if let Some(size) = size {
        *size = allocation.size();
    }
    Ok(())
}

fn find(context: &Context, address: usize) -> Option<Arc<Allocation>> {
    memory::find(address).filter(|allocation| allocation.context() == context.id())
}
