//! Command lists, regular and immediate.

use std::sync::Arc;

use level_zero_sys as sys;
use zeusm_process::{ForkSafe, Mutex};

use super::recording::Recording;
use crate::abi::entry::Argument;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{Device, QueueGroup};
use crate::engine::Stream;
use crate::handle::{object, resolve};
use crate::system::clock::Deadline;

object!(CommandList, sys::_ze_command_list_handle_t, CommandList);

/// A command list.
pub struct CommandList {
    /// Kept alive for its work.
    pub(super) context: Arc<Context>,
    pub(super) context_handle: usize,
    pub(super) device: &'static Device,
    pub(super) group: QueueGroup,
    pub(super) flags: u32,
    pub(super) in_order: bool,
    pub(super) is_mutable: bool,
    pub(super) role: Role,
}

/// Which of both it is.
pub(super) enum Role {
    Regular(ForkSafe<Mutex<Recording>>),
    Immediate(Immediate),
}

/// What an immediate list has.
pub(super) struct Immediate {
    pub(super) stream: Stream,
    pub(super) synchronous: bool,
    pub(super) desc: QueueAttributes,
}

/// The attributes of a queue or an immediate list.
#[derive(Clone, Copy, Debug)]
pub struct QueueAttributes {
    /// `ze_command_queue_flags_t`.
    pub flags: u32,
    /// Index within the group.
    pub index: u32,
    /// Synchronous or not.
    pub mode: sys::ze_command_queue_mode_t,
    /// Priority.
    pub priority: sys::ze_command_queue_priority_t,
}

impl From<&sys::ze_command_queue_desc_t> for QueueAttributes {
    fn from(desc: &sys::ze_command_queue_desc_t) -> Self {
        Self {
            flags: desc.flags,
            index: desc.index,
            mode: desc.mode,
            priority: desc.priority,
        }
    }
}

impl CommandList {
    /// What an immediate list has.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a regular one.
    pub(super) fn immediate(&self) -> ZeResult<&Immediate> {
        match &self.role {
            Role::Immediate(immediate) => Ok(immediate),
            Role::Regular(_) => Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
    }
}

impl Immediate {
    /// In a synchronous list, waits for the appended commands.
    pub(super) fn synchronize_if_synchronous(&self) -> ZeResult {
        if self.synchronous {
            self.stream.synchronize(Deadline::Never)?;
        }
        Ok(())
    }
}

/// A list as an argument, to which kernels are to be appended.
pub struct KernelList(pub Arc<CommandList>);

impl Argument<sys::ze_command_list_handle_t> for KernelList {
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE` for a list of the group that only copies; those of [`resolve`].
    unsafe fn check(raw: sys::ze_command_list_handle_t) -> ZeResult<Self> {
        let list = resolve::<CommandList>(raw)?;
        ensure(
            list.group == QueueGroup::Compute,
            sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE,
        )?;
        Ok(Self(list))
    }
}
