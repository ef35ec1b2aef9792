//! Getters of command lists.

use level_zero_sys as sys;

use super::list::{CommandList, Role};
use crate::handle::getters;

getters! { CommandList {
    /// `zeCommandListGetDeviceHandle`.
    device_handle: sys::ze_device_handle_t = |list| Ok(list.device.handle());
    /// `zeCommandListGetContextHandle`.
    context_handle: sys::ze_context_handle_t =
        |list| Ok(list.context_handle as sys::ze_context_handle_t);
    /// `zeCommandListGetOrdinal`.
    ordinal: u32 = |list| Ok(list.group.ordinal());
    /// `zeCommandListGetFlags`, of a regular list.
    creation_flags: u32 = |list| match list.role {
        Role::Regular(_) => Ok(list.flags),
        Role::Immediate(_) => Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT),
    };
    /// `zeCommandListIsImmediate`.
    is_immediate: sys::ze_bool_t =
        |list| Ok(sys::ze_bool_t::from(matches!(list.role, Role::Immediate(_))));
    /// `zeCommandListImmediateGetIndex`.
    index: u32 = |list| Ok(list.immediate()?.index);
    /// `zeCommandListImmediateGetFlags`.
    queue_flags: u32 = |list| Ok(list.immediate()?.flags);
    /// `zeCommandListImmediateGetMode`.
    mode: sys::ze_command_queue_mode_t = |list| Ok(list.immediate()?.mode);
    /// `zeCommandListImmediateGetPriority`.
    priority: sys::ze_command_queue_priority_t = |list| Ok(list.immediate()?.priority);
}}
