//! `zeMemGetAllocProperties` and `zeMemGetAddressRange`.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND;

use super::platform::export;
use crate::abi::entry::{Address, Out};
use crate::abi::result::ZeResult;
use crate::abi::strictness::is_strict;
use crate::context::Context;
use crate::device::check_external;
use crate::memory::{self, Allocation, PAGE};
use crate::virtual_memory;

/// What programs take for no descriptor.
const NO_DESCRIPTOR: i32 = -1;

/// `zeMemGetAllocProperties`: a pointer that no context knows is of type unknown. One into virtual memory is of the type of
/// its physical memory. With `ze_external_memory_export_fd_t` in the chain, memory that was allocated for it is exported: as a
/// new descriptor, of a memory file that begins with it, which belongs to the caller. The runtime makes no dma-bufs: UCX asks for
/// that of each pointer, together with its kind, and gets none.
pub fn properties(
    context: Arc<Context>,
    Address(pointer): Address,
    mut properties: Out<'_, sys::ze_memory_allocation_properties_t>,
    owner: Option<&mut sys::ze_device_handle_t>,
) -> ZeResult {
    let found = find(&context, pointer);
    let mapped = match &found {
        None => virtual_memory::find(owner_asked_for(&context), pointer),
        Some(_) => None,
    };
    let (kind, id, page, device) = match (&found, &mapped) {
        (Some(allocation), _) => (
            allocation.request.kind,
            allocation.id,
            allocation.page_size() as u64,
            allocation.request.device as sys::ze_device_handle_t,
        ),
        (None, Some((_, physical))) => {
            let device = physical.device as sys::ze_device_handle_t;
            let kind = if device.is_null() {
                sys::ZE_MEMORY_TYPE_HOST
            } else {
                sys::ZE_MEMORY_TYPE_DEVICE
            };
            (kind, physical.id, PAGE as u64, device)
        }
        (None, None) => (sys::ZE_MEMORY_TYPE_UNKNOWN, 0, 0, ptr::null_mut()),
    };
    if let Some(export) = properties.extension::<sys::ze_external_memory_export_fd_t>() {
        export.fd = match check_external(export.flags) {
            Err(_) if !is_strict() => NO_DESCRIPTOR,
            checked => checked.and_then(|()| exported(found.as_deref()))?,
        };
    }
    properties.type_ = kind;
    properties.id = id;
    properties.pageSize = page;
    if let Some(owner) = owner {
        *owner = device;
    }
    Ok(())
}

/// A new descriptor of the file with an allocation that was made for it.
fn exported(allocation: Option<&Allocation>) -> ZeResult<i32> {
    let allocation = allocation.filter(|it| it.request.exportable);
    export(allocation.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?)
}

/// `zeMemGetAddressRange`.
pub fn address_range(
    context: Arc<Context>,
    Address(pointer): Address,
    base: Option<&mut *mut c_void>,
    size: Option<&mut usize>,
) -> ZeResult {
    let found = match find(&context, pointer) {
        Some(allocation) => Some(allocation.bytes()),
        None => virtual_memory::find(owner_asked_for(&context), pointer).map(|it| it.0),
    };
    let found = found.ok_or(ZE_RESULT_ERROR_ADDRESS_NOT_FOUND)?;
    if let Some(base) = base {
        *base = found.start as *mut c_void;
    }
    if let Some(size) = size {
        *size = found.len();
    }
    Ok(())
}

/// The context whose memory a query with `context` tells of, or all contexts. Intel's driver looks pointers up in the whole
/// driver, and MPI, libfabric, UCX and oneCCL ask with contexts of their own; by the letter, memory belongs to one context.
pub fn owner_asked_for(context: &Context) -> Option<u64> {
    is_strict().then_some(context.id)
}

fn find(context: &Context, address: usize) -> Option<Arc<Allocation>> {
    let owner = owner_asked_for(context);
    memory::find(address).filter(|it| owner.is_none_or(|owner| it.request.context == owner))
}
