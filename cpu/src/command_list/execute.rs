//! Executing the recorded commands of regular lists.

use std::sync::Arc;

use level_zero_sys as sys;

use super::append::Events;
use super::list::{CommandList, Role};
use super::recording::Command;
use super::submit::submit;
use crate::abi::result::{ZeResult, ensure};
use crate::device::QueueGroup;
use crate::engine::{Nothing, Order, Pins, Stream};
use crate::handle::resolve_all;

/// Closed lists with live memory, ready to be submitted.
pub struct Batch {
    lists: Vec<Vec<Command>>,
    /// Keeps the memory alive until every command has its own pins.
    _pins: Vec<Pins>,
}

impl Batch {
    /// Collects lists, all or none.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE` for an immediate list or one of another group,
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for one that is not closed or touches freed memory, and the errors of [`resolve_all`].
    ///
    /// # Safety
    /// `lists` must be null, misaligned or valid for `count` handles.
    pub unsafe fn collect(
        group: QueueGroup,
        count: u32,
        lists: *mut sys::ze_command_list_handle_t,
    ) -> ZeResult<Self> {
        ensure(!lists.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        ensure(count > 0, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        // SAFETY: the caller vouches for the array.
        let lists = unsafe {
            resolve_all::<CommandList>(lists, count, sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)
        }?;
        let lists = lists.iter().map(|list| commands(group, list));
        let lists = lists.collect::<ZeResult<Vec<_>>>()?;
        let pins = lists
            .iter()
            .flatten()
            .map(|command| command.operation.pin())
            .collect::<ZeResult<Vec<_>>>()?;
        Ok(Self { lists, _pins: pins })
    }

    /// Submits them in order, with a barrier before each list.
    pub fn submit(&self, stream: &Stream) -> ZeResult {
        for list in &self.lists {
            stream.barrier();
            for Command {
                operation,
                order,
                waits,
                event,
            } in list
            {
                let operation = Arc::clone(operation);
                submit(stream, operation, *order, waits, event.as_deref())?;
            }
        }
        Ok(())
    }
}

fn commands(group: QueueGroup, list: &CommandList) -> ZeResult<Vec<Command>> {
    ensure(
        list.group == group,
        sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE,
    )?;
    match &list.role {
        Role::Immediate(_) => Err(sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE),
        Role::Regular(recording) => {
            let recording = recording.get().lock();
            ensure(recording.closed, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
            Ok(recording.commands.clone())
        }
    }
}

/// `zeCommandListImmediateAppendCommandListsExp`.
///
/// # Safety
/// As for [`Batch::collect`].
pub unsafe fn append_lists(
    list: Arc<CommandList>,
    count: u32,
    lists: *mut sys::ze_command_list_handle_t,
    events: Events,
) -> ZeResult {
    let immediate = list.immediate()?;
    // SAFETY: the caller vouches for the array.
    let batch = unsafe { Batch::collect(list.group, count, lists) }?;
    events.at_start().append(&list, Nothing, Order::Barrier)?;
    batch.submit(&immediate.stream)?;
    events.at_end().append(&list, Nothing, Order::Barrier)
}
