//! Creating, closing, resetting and destroying command lists.

use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;
use zeusm_process::ForkSafe;

use super::list::{CommandList, Immediate, Role};
use super::mutable::is_mutable;
use super::recording::Recording;
use crate::abi::arguments::{check_flags, input_structure, output};
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{self, QueueGroup};
use crate::engine::Stream;
use crate::handle::{register, resolve, retire};
use crate::system::clock::Deadline;

/// `ze_command_list_flags_t` up to 1.17.
const FLAGS: u32 = 0x3f;

/// `zeCommandListCreate`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    desc: *const sys::ze_command_list_desc_t,
    list: *mut sys::ze_command_list_handle_t,
) -> ZeResult {
    let owner = resolve::<Context>(context)?;
    let on = device::find(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, list) = unsafe { (input_structure(desc)?, output(list)?) };
    check_flags(desc.flags, FLAGS)?;
    let group = QueueGroup::of(desc.commandQueueGroupOrdinal)?;
    *list = register(Arc::new(CommandList {
        context: owner,
        context_handle: context as usize,
        device: on,
        group,
        flags: desc.flags,
        in_order: desc.flags & extensions::ZE_COMMAND_LIST_FLAG_IN_ORDER != 0,
        // SAFETY: the caller vouches for the chain.
        is_mutable: unsafe { is_mutable(desc.pNext) }?,
        role: Role::Regular(ForkSafe::default()),
    }))?;
    Ok(())
}

/// `zeCommandListCreateImmediate`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn create_immediate(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    desc: *const sys::ze_command_queue_desc_t,
    list: *mut sys::ze_command_list_handle_t,
) -> ZeResult {
    let owner = resolve::<Context>(context)?;
    let on = device::find(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, list) = unsafe { (input_structure(desc)?, output(list)?) };
    let group = device::check_queue(desc)?;
    *list = register(Arc::new(CommandList {
        context: owner,
        context_handle: context as usize,
        device: on,
        group,
        flags: 0,
        in_order: desc.flags & extensions::ZE_COMMAND_QUEUE_FLAG_IN_ORDER != 0,
        is_mutable: false,
        role: Role::Immediate(Immediate {
            stream: Stream::new(on.engine(), desc.priority.into()),
            synchronous: desc.mode == sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
            desc: desc.into(),
        }),
    }))?;
    Ok(())
}

/// `zeCommandListDestroy`; submitted commands are not affected.
pub fn destroy(list: sys::ze_command_list_handle_t) -> ZeResult {
    retire::<CommandList>(list).map(drop)
}

/// `zeCommandListClose`. An immediate list needs no closing and stays open, as its commands are submitted already.
pub fn close(list: sys::ze_command_list_handle_t) -> ZeResult {
    if let Role::Regular(recording) = &resolve::<CommandList>(list)?.role {
        recording.get().lock().closed = true;
    }
    Ok(())
}

/// `zeCommandListReset`: empty and open again. An immediate list always is; its submitted commands are not affected.
pub fn reset(list: sys::ze_command_list_handle_t) -> ZeResult {
    if let Role::Regular(recording) = &resolve::<CommandList>(list)?.role {
        *recording.get().lock() = Recording::default();
    }
    Ok(())
}

/// `zeCommandListHostSynchronize`, `timeout` in nanoseconds.
pub fn host_synchronize(list: sys::ze_command_list_handle_t, timeout: u64) -> ZeResult {
    let list = resolve::<CommandList>(list)?;
    let stream = &list.immediate()?.stream;
    let done = stream.synchronize(Deadline::after(timeout))?;
    ensure(done, sys::ZE_RESULT_NOT_READY)
}
