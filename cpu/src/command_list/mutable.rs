//! Mutable lists: commands that are changed between executions of the list.

use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;
use zeusm_process::MutexGuard;

use super::append::{event, optional_event};
use super::list::{CommandList, Role};
use super::recording::{Mutable, Recording};
use crate::abi::arguments::check_flags;
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, ensure};
use crate::device::MUTABLE_FLAGS;
use crate::engine::Operation;
use crate::handle::getters;

/// `ze_mutable_command_list_exp_flags_t` up to 1.17.
const LIST_FLAGS: u32 = 0x1;
/// The parts that can be changed unless the program says otherwise: all but the kernel.
const DEFAULT_FLAGS: u32 =
    MUTABLE_FLAGS & !extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION;

/// Whether a descriptor's chain makes the list mutable.
pub(super) fn is_mutable(desc: &In<'_, sys::ze_command_list_desc_t>) -> ZeResult<bool> {
    let mutable = desc.extension::<extensions::ze_mutable_command_list_exp_desc_t>();
    mutable.map_or(Ok(false), |it| {
        check_flags(it.flags, LIST_FLAGS).map(|()| true)
    })
}

impl CommandList {
    /// The commands of a mutable list.
    fn mutable(&self) -> ZeResult<MutexGuard<'_, Recording>> {
        match &self.role {
            Role::Regular(recording) if self.is_mutable => Ok(recording.get().lock()),
            _ => Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
    }

    /// Replaces the operation of a command, of which all of `flags` can be changed, by the one that `change` makes of it.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for any other command, and for memory that the device does not access; those of
    /// `change`.
    pub fn change<O: Operation + 'static>(
        &self,
        id: u64,
        flags: u32,
        change: impl FnOnce(&dyn Operation) -> ZeResult<O>,
    ) -> ZeResult {
        let mut recording = self.mutable()?;
        let (command, _) = recording.command(id, flags)?;
        let changed = change(&*command.operation)?;
        self.check_access(&changed)?;
        command.operation = Arc::new(changed);
        Ok(())
    }
}

/// `zeCommandListGetNextCommandIdExp`, of the command that is appended next.
pub fn next_command_id(
    list: Arc<CommandList>,
    desc: In<'_, extensions::ze_mutable_command_id_exp_desc_t>,
    id: &mut u64,
) -> ZeResult {
    check_flags(desc.flags, MUTABLE_FLAGS)?;
    let mut recording = list.mutable()?;
    ensure(!recording.closed, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    let flags = if desc.flags == 0 {
        DEFAULT_FLAGS
    } else {
        desc.flags
    };
    recording.ids.pop_if(|last| last.position.is_none());
    recording.ids.push(Mutable {
        flags,
        position: None,
        waits: 0,
    });
    *id = recording.ids.len() as u64;
    Ok(())
}

/// `zeCommandListUpdateMutableCommandSignalEventExp`; null signals no event.
pub fn update_signal(list: Arc<CommandList>, id: u64, signal: sys::ze_event_handle_t) -> ZeResult {
    let signal = optional_event(signal)?;
    let mut recording = list.mutable()?;
    let flags = extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT;
    recording.command(id, flags)?.0.event = signal;
    Ok(())
}

/// `zeCommandListUpdateMutableCommandWaitEventsExp`. A null array waits for no event, and so does a null in its place.
pub fn update_waits(
    list: Arc<CommandList>,
    id: u64,
    waits: Option<&[sys::ze_event_handle_t]>,
) -> ZeResult {
    let mut recording = list.mutable()?;
    let flags = extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS;
    let (command, first) = recording.command(id, flags)?;
    ensure(
        waits.is_none_or(|waits| waits.len() == first),
        sys::ZE_RESULT_ERROR_INVALID_SIZE,
    )?;
    let events = waits.unwrap_or_default().iter();
    let events = events.filter(|handle| !handle.is_null());
    let events = events.map(|handle| event(*handle));
    command.waits = events.collect::<ZeResult<Vec<Arc<_>>>>()?;
    Ok(())
}

getters! { CommandList {
    /// `zeCommandListIsMutableExp`.
    is_mutable_list: sys::ze_bool_t = |list| Ok(sys::ze_bool_t::from(list.is_mutable));
}}
