//! What the completion of a command reports.

use std::sync::Arc;

use super::dependence::Order;
use super::signal::Signal;

/// The signal that a command sets, and whether that may report the errors of other commands.
pub struct Report {
    /// The signal.
    pub signal: Option<Arc<Signal>>,
    /// Whether the program ordered the command behind all commands before it. The command's order in an engine is another one.
    pub of_all: bool,
}

impl Report {
    /// That of a command which the program submits with this order.
    pub fn new(signal: Option<Arc<Signal>>, order: Order) -> Self {
        let of_all = order.follows_all();
        Self { signal, of_all }
    }

    /// That of a marker which a stream adds: the program does not see the signal, so errors are left to the program's own.
    pub fn of_marker(signal: Option<Arc<Signal>>) -> Self {
        let of_all = false;
        Self { signal, of_all }
    }
}
