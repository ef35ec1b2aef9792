//! The commands that a regular list records.

use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};
use crate::engine::{Operation, Order};
use crate::event::Event;

/// The commands of a regular list.
#[derive(Clone, Default)]
pub(super) struct Recording {
    pub(super) closed: bool,
    pub(super) commands: Vec<Command>,
    /// Of a mutable list, those that can be changed.
    pub(super) ids: Vec<Mutable>,
}

/// A command of a regular list.
#[derive(Clone)]
pub(super) struct Command {
    pub(super) operation: Arc<dyn Operation>,
    pub(super) order: Order,
    pub(super) waits: Vec<Arc<Event>>,
    pub(super) event: Option<Arc<Event>>,
}

/// A command with an id. The id is its position among those of the list, from 1 on.
#[derive(Clone, Copy)]
pub(super) struct Mutable {
    /// The parts that can be changed.
    pub(super) flags: u32,
    /// The position of the command in the list, once it is appended.
    pub(super) position: Option<usize>,
    /// The length of its first wait list.
    pub(super) waits: usize,
}

impl Recording {
    /// Appends a command, which gets the id that was requested for the next one.
    pub(super) fn push(&mut self, command: Command) {
        if let Some(next) = self.ids.last_mut().filter(|next| next.position.is_none()) {
            next.position = Some(self.commands.len());
            next.waits = command.waits.len();
        }
        self.commands.push(command);
    }

    /// The command with this id, of which all of `flags` can be changed.
    pub(super) fn command(&mut self, id: u64, flags: u32) -> ZeResult<(&mut Command, usize)> {
        let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
        let index = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        let found = index.and_then(|index| self.ids.get(index)).ok_or(invalid)?;
        ensure(found.flags & flags == flags, invalid)?;
        let command = found
            .position
            .and_then(|position| self.commands.get_mut(position))
            .ok_or(invalid)?;
        Ok((command, found.waits))
    }
}
