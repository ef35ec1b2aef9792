//! Creating, closing, resetting and destroying command lists.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use level_zero_sys as sys;
use level_zero_sys::extensions;
use zeusm_process::ForkSafe;

use super::list::{CommandList, Role, Submitter, next_id};
use super::mutable::is_mutable;
use super::recording::Recording;
use crate::abi::arguments::check_flags;
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{self, Device, QueueGroup};
use crate::handle::{Named, hand_out};

/// `ze_command_list_flags_t` up to 1.17.
const FLAGS: u32 = 0x3f;

/// `zeCommandListCreate`.
pub fn create(
    Named(context, handle): Named<Context>,
    on: &'static Device,
    desc: In<'_, sys::ze_command_list_desc_t>,
    list: &mut sys::ze_command_list_handle_t,
) -> ZeResult {
    check_flags(desc.flags, FLAGS)?;
    let group = QueueGroup::of(desc.commandQueueGroupOrdinal)?;
    let made = CommandList {
        id: next_id(),
        context,
        context_handle: handle as usize,
        device: on,
        group,
        flags: desc.flags,
        in_order: desc.flags & extensions::ZE_COMMAND_LIST_FLAG_IN_ORDER != 0,
        is_mutable: is_mutable(&desc)?,
        capture: AtomicUsize::new(0),
        role: Role::Regular(ForkSafe::default()),
    };
    hand_out(made, list)
}

/// `zeCommandListCreateImmediate`.
pub fn create_immediate(
    Named(context, handle): Named<Context>,
    on: &'static Device,
    desc: In<'_, sys::ze_command_queue_desc_t>,
    list: &mut sys::ze_command_list_handle_t,
) -> ZeResult {
    let group = device::check_queue(&desc)?;
    let made = CommandList {
        id: next_id(),
        context,
        context_handle: handle as usize,
        device: on,
        group,
        flags: 0,
        in_order: desc.flags & extensions::ZE_COMMAND_QUEUE_FLAG_IN_ORDER != 0,
        is_mutable: false,
        capture: AtomicUsize::new(0),
        role: Role::Immediate(Submitter::new(on, &desc)),
    };
    hand_out(made, list)
}

/// `zeCommandListClose`. An immediate list needs no closing and stays open, as its commands are submitted already.
pub fn close(list: Arc<CommandList>) -> ZeResult {
    if let Role::Regular(recording) = &list.role {
        recording.get().lock().closed = true;
    }
    Ok(())
}

/// `zeCommandListReset`: empty and open again. An immediate list always is; its submitted commands are not affected.
pub fn reset(list: Arc<CommandList>) -> ZeResult {
    if let Role::Regular(recording) = &list.role {
        *recording.get().lock() = Recording::default();
    }
    Ok(())
}

/// `zeCommandListHostSynchronize`, `timeout` in nanoseconds.
pub fn host_synchronize(list: Arc<CommandList>, timeout: u64) -> ZeResult {
    let immediate = list.immediate()?;
    let captured = extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    ensure(list.graph().is_none(), captured)?;
    immediate.synchronize(timeout)
}
