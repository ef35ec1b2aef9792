//! Executing the recorded commands of regular lists.

use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::append::Events;
use super::list::{CommandList, Role};
use super::recording::Command;
use super::submit::submit;
use crate::abi::entry::NoExtension;
use crate::abi::result::{ZeResult, ensure};
use crate::device::QueueGroup;
use crate::engine::{Nothing, Order, Pins, Stream};

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
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for one that is not closed or touches freed memory, `ZE_RESULT_ERROR_INVALID_SIZE`
    /// for none.
    pub fn collect(group: QueueGroup, lists: &[Arc<CommandList>]) -> ZeResult<Self> {
        ensure(!lists.is_empty(), sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
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
pub fn append_lists(
    list: Arc<CommandList>,
    lists: Vec<Arc<CommandList>>,
    events: Events,
) -> ZeResult {
    let immediate = list.immediate()?;
    let captured = extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    ensure(list.graph().is_none(), captured)?;
    let batch = Batch::collect(list.group, &lists)?;
    list.append(Nothing, Order::Barrier, None, &events.waits)?;
    batch.submit(&immediate.stream)?;
    list.append(Nothing, Order::Barrier, events.signal, &[])
}

/// `zeCommandListImmediateAppendCommandListsWithParameters`.
pub fn append_lists_with_parameters(
    list: Arc<CommandList>,
    lists: Vec<Arc<CommandList>>,
    _: NoExtension,
    events: Events,
) -> ZeResult {
    append_lists(list, lists, events)
}
