//! Command lists: regular ones record commands, immediate ones submit them.

mod access;
mod append;
mod create;
mod execute;
mod memory;
mod mutable;
mod query;

use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{Device, QueueGroup};
use crate::engine::{Operation, Order, Stream};
use crate::event::Event;
use crate::handle::{object, resolve};
use crate::system::clock::Deadline;
pub use append::*;
pub use create::*;
pub use execute::*;
pub use memory::*;
use mutable::Mutable;
pub use mutable::{is_mutable_list, next_command_id, update_signal, update_waits};
pub use query::*;
use zeusm_process::{ForkSafe, Mutex};

object!(CommandList, sys::_ze_command_list_handle_t, CommandList);

/// A command list.
pub struct CommandList {
    /// Kept alive for its work.
    context: Arc<Context>,
    context_handle: usize,
    device: &'static Device,
    group: QueueGroup,
    flags: u32,
    in_order: bool,
    is_mutable: bool,
    role: Role,
}

enum Role {
    Regular(ForkSafe<Mutex<Recording>>),
    Immediate(Immediate),
}

struct Immediate {
    stream: Stream,
    synchronous: bool,
    desc: QueueAttributes,
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

#[derive(Clone, Default)]
struct Recording {
    closed: bool,
    commands: Vec<Command>,
    /// Of a mutable list, those that can be changed.
    ids: Vec<Mutable>,
}

/// A command of a regular list.
#[derive(Clone)]
struct Command {
    operation: Arc<dyn Operation>,
    order: Order,
    waits: Vec<Arc<Event>>,
    event: Option<Arc<Event>>,
}

impl CommandList {
    /// The list of a handle, to which kernels are to be appended.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE` for a list of the group that only copies; those of [`resolve`].
    pub fn for_kernels(handle: sys::ze_command_list_handle_t) -> ZeResult<Arc<Self>> {
        let list = resolve::<Self>(handle)?;
        ensure(
            list.group == QueueGroup::Compute,
            sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE,
        )?;
        Ok(list)
    }

    /// Appends an operation; every append ends here.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when a regular list is closed, or the device does not access the memory; and the
    /// errors of [`Operation::pin`].
    pub fn append<O: Operation + 'static>(
        &self,
        operation: O,
        order: Order,
        event: Option<Arc<Event>>,
        waits: &[Arc<Event>],
    ) -> ZeResult {
        self.check_access(&operation)?;
        let order = if self.in_order { Order::Barrier } else { order };
        match &self.role {
            Role::Immediate(immediate) => {
                submit(&immediate.stream, operation, order, waits, event.as_deref())?;
                immediate.synchronize_if_synchronous()
            }
            Role::Regular(recording) => {
                let mut recording = recording.get().lock();
                ensure(!recording.closed, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
                recording.push(Command {
                    operation: operation.share(),
                    order,
                    waits: waits.to_vec(),
                    event,
                });
                Ok(())
            }
        }
    }
}

/// Submits an operation with the current signals of its events.
///
/// # Errors
/// Those of [`Operation::pin`]; nothing is submitted then.
fn submit<O: Operation + 'static>(
    stream: &Stream,
    operation: O,
    order: Order,
    waits: &[Arc<Event>],
    event: Option<&Event>,
) -> ZeResult {
    if let Some(operation) = operation.at_submission() {
        return submit(stream, operation, order, waits, event);
    }
    let pins = operation.pin()?;
    // Taken before the operation's own event, which may be in the wait list, gets a new signal.
    let waits = waits.iter().map(|event| event.signal()).collect();
    stream.submit(
        operation,
        pins,
        order,
        waits,
        event.map(Event::signal_for_submission),
    );
    Ok(())
}

impl Immediate {
    /// In a synchronous list, waits for the appended commands.
    fn synchronize_if_synchronous(&self) -> ZeResult {
        if self.synchronous {
            self.stream.synchronize(Deadline::Never)?;
        }
        Ok(())
    }
}
