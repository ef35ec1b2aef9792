//! The engine of a device, which its queues and lists share.

use std::sync::Arc;

use super::sequence::Sequence;

/// The engine of a device: it executes the commands of all queues and lists of the device one after another, in the order of
/// their submission.
#[derive(Clone, Default)]
pub struct DeviceEngine {
    pub(super) sequence: Arc<Sequence>,
    /// Whether a command that waits for the host blocks it.
    pub(super) is_blocked: bool,
}

impl DeviceEngine {
    /// An engine that a command which waits for the host, or for a later command, blocks, as Intel's driver's.
    #[must_use]
    pub fn that_waits() -> Self {
        Self {
            is_blocked: true,
            ..Self::default()
        }
    }
}
