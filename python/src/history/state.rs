//! The memory at one time, and what was recorded until then.

use std::sync::Arc;

use crate::stacks::{self, StackTable};
use zeusm::history::{Event, Operation, Recording};
use zeusm::pool::{self, HeldSlab};
use zeusm::usm::{self, UnpooledBlock};

/// What zeusm holds at one time, and the recording.
pub(super) struct State {
    pub(super) slabs: Vec<HeldSlab>,
    pub(super) unpooled: Vec<UnpooledBlock>,
    pub(super) recording: Option<Recording>,
    pub(super) stacks: Option<Arc<StackTable>>,
}

impl State {
    /// The blocks first, so that what is recorded of them is known.
    pub(super) fn new(recording: impl FnOnce() -> Option<Recording>) -> Self {
        Self {
            slabs: pool::slabs(),
            unpooled: usm::unpooled(),
            recording: recording(),
            stacks: stacks::current(),
        }
    }

    pub(super) fn events(&self) -> &[Event] {
        let recording = self.recording.as_ref();
        recording.map_or(&[], |recording| &recording.events)
    }

    pub(super) fn operations(&self) -> &[Operation] {
        let recording = self.recording.as_ref();
        recording.map_or(&[], |recording| &recording.operations)
    }
}
