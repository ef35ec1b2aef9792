//! Resetting an event on the device.

use std::sync::Arc;

use crate::engine::{Operation, Signal};
use crate::event::Event;

/// Makes an event unsignalled.
pub struct Reset(pub Arc<Event>);

impl Operation for Reset {
    fn resets(&self) -> Option<Arc<Signal>> {
        Some(self.0.signal())
    }
}
