//! No events that processes share: that needs Linux's memory files.

use std::convert::Infallible;
use std::sync::Arc;

use crate::engine::Signal;
use crate::memory::ShareError;

/// The state of shared events: there is none.
pub struct Board {
    /// The pool's flags.
    pub flags: u32,
    /// How many events there are.
    pub count: u32,
    never: Infallible,
}

impl Board {
    /// # Errors
    /// Always.
    pub fn create(_flags: u32, _count: u32) -> Result<Self, ShareError> {
        Err(ShareError)
    }
}

/// A board whose changes this process sees.
pub struct Watcher {
    /// The board.
    pub board: Board,
}

impl Watcher {
    /// A watcher.
    pub fn new(board: Board) -> Self {
        Self { board }
    }

    /// A signal of the event with this index.
    pub fn signal(&self, _index: u32, _timed: bool) -> Arc<Signal> {
        match self.board.never {}
    }
}
