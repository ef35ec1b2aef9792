//! `zeMemGetIpcHandle`, `zeMemPutIpcHandle` and `zeMemGetFileDescriptorFromIpcHandleExp`.

use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::ze_ipc_mem_handle_type_ext_desc_t as HandleType;
use zeusm_process::duplicate;

use super::super::query::owner_asked_for;
use super::handle::{Handle, Subject};
use super::import::is_of;
use crate::abi::entry::{Address, Chain};
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::check_handle_type;
use crate::{memory, virtual_memory};

/// `zeMemGetIpcHandle`, for the base address of an allocation of any kind, for that of physical memory where it is
/// mapped, and for physical memory itself, given by its handle. The descriptor in the handle stays open until the allocation is
/// freed, the address unmapped, or the physical memory gone.
pub fn get(
    context: Arc<Context>,
    Address(pointer): Address,
    handle: &mut sys::ze_ipc_mem_handle_t,
) -> ZeResult {
    let export = match memory::find(pointer) {
        Some(allocation) => {
            let owner = owner_asked_for(&context);
            ensure(
                allocation.base() == pointer
                    && owner.is_none_or(|owner| allocation.request.context == owner),
                sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
            )?;
            allocation.export()?
        }
        None => virtual_memory::export(pointer)?,
    };
    let export = Handle::new(export.descriptor, export.inode, export.position, export.id);
    handle.data = export.encode(Subject::Memory);
    Ok(())
}

/// `zeMemGetIpcHandleWithProperties`: handles are for this machine.
///
/// # Errors
/// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE` for a handle that is to be used by other machines,
/// `ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION` for any other extension of the call, and those of [`get`].
pub fn get_with_properties(
    context: Arc<Context>,
    pointer: Address,
    next: Chain,
    handle: &mut sys::ze_ipc_mem_handle_t,
) -> ZeResult {
    for link in next.links() {
        let wanted = link.input::<HandleType>();
        let wanted = wanted.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)?;
        check_handle_type(wanted)?;
    }
    get(context, pointer, handle)
}

/// `zeMemPutIpcHandle`: the handle's descriptor belongs to the allocation and is closed with it, so only the handle is
/// checked.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for anything but a handle.
pub fn put(_: Arc<Context>, handle: sys::ze_ipc_mem_handle_t) -> ZeResult {
    Handle::decode(&handle.data, Subject::Memory).map(drop)
}

/// `zeMemGetFileDescriptorFromIpcHandleExp`: the descriptor belongs to the allocation and is closed with it.
pub fn to_descriptor(
    _: Arc<Context>,
    handle: sys::ze_ipc_mem_handle_t,
    descriptor: &mut u64,
) -> ZeResult {
    let handle = Handle::decode(&handle.data, Subject::Memory)?;
    let known = duplicate(handle.descriptor).is_some_and(|file| is_of(&file, &handle));
    ensure(known, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    *descriptor = u64::from(handle.descriptor.cast_unsigned());
    Ok(())
}
