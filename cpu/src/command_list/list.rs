//! Command lists, regular and immediate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use level_zero_sys as sys;
use zeusm_process::{ForkSafe, Mutex};

use super::recording::Recording;
use crate::abi::entry::Argument;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{Device, QueueGroup};
use crate::engine::Stream;
use crate::handle::{Object, object, resolve};
use crate::system::clock::Deadline;

object!(CommandList, sys::_ze_command_list_handle_t, CommandList);

/// A command list.
pub struct CommandList {
    /// What tells it from every other list of the process, also from one that was destroyed.
    pub(super) id: u64,
    /// Kept alive for its work.
    pub(super) context: Arc<Context>,
    pub(super) context_handle: usize,
    pub(super) device: &'static Device,
    pub(super) group: QueueGroup,
    pub(super) flags: u32,
    pub(super) in_order: bool,
    pub(super) is_mutable: bool,
    /// The handle of the graph that records its commands, or did so until it ended; 0 without one.
    pub(super) capture: AtomicUsize,
    pub(super) role: Role,
}

/// The id of a new list.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Which of both it is.
pub(super) enum Role {
    Regular(ForkSafe<Mutex<Recording>>),
    Immediate(Submitter),
}

/// What executes commands at once: a queue, or an immediate list.
pub struct Submitter {
    /// The commands.
    pub stream: Stream,
    /// `ze_command_queue_flags_t`.
    pub flags: u32,
    /// Index within the group.
    pub index: u32,
    /// Synchronous or not.
    pub mode: sys::ze_command_queue_mode_t,
    /// Priority.
    pub priority: sys::ze_command_queue_priority_t,
}

impl Submitter {
    /// That of a device, as the descriptor wants it.
    pub fn new(device: &Device, desc: &sys::ze_command_queue_desc_t) -> Self {
        Self {
            stream: Stream::new(device.engine.as_ref(), desc.priority.into()),
            flags: desc.flags,
            index: desc.index,
            mode: desc.mode,
            priority: desc.priority,
        }
    }

    /// Waits for all commands, up to a timeout in nanoseconds.
    pub fn synchronize(&self, timeout: u64) -> ZeResult {
        let done = self.stream.synchronize(Deadline::after(timeout))?;
        ensure(done, sys::ZE_RESULT_NOT_READY)
    }

    /// Waits for the commands that have just been submitted, if it is synchronous.
    pub fn synchronize_if_synchronous(&self) -> ZeResult {
        if self.mode == sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS {
            self.synchronize(u64::MAX)?;
        }
        Ok(())
    }
}

impl CommandList {
    /// Waits for all commands of the immediate lists of a device and of its tiles.
    pub fn synchronize_all(device: &Device) -> ZeResult {
        let lists = Self::table().all().into_iter();
        let lists = lists.filter(|list| device.includes(list.device));
        lists
            .filter_map(|list| Some(list.immediate().ok()?.synchronize(u64::MAX)))
            .fold(Ok(()), ZeResult::and)
    }

    /// What an immediate list has.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a regular one.
    pub(super) fn immediate(&self) -> ZeResult<&Submitter> {
        match &self.role {
            Role::Immediate(immediate) => Ok(immediate),
            Role::Regular(_) => Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
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
