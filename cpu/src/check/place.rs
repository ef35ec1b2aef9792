//! What determines the place of a command among the others.

use std::collections::BTreeSet;

/// Numbers of commands.
pub type Set = BTreeSet<u64>;

/// A signal that a command waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The signal.
    pub signal: usize,
    /// Whether it is neither set nor promised: no submitted command will set it, nor is the host about to.
    pub is_open: bool,
}

/// Which commands of its stream a command follows.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The stream.
    pub stream: usize,
    /// Whether it follows all earlier commands, or the last barrier only.
    pub follows_all: bool,
    /// Whether all later commands follow it.
    pub holds_later: bool,
}
