//! Events: signals with the times of the commands that set them.
//!
//! A regular event is set by the command that signals it, until it is reset. A counter-based event is never reset: each
//! command that signals it gets a new signal, and a wait refers to the signal that is the latest at that time.
//!
//! Processes may share the regular events of a pool, and counter-based events (`ipc`). The state of such an event is in a file
//! (`board`), that of a counter-based one in several (`rounds`).

#[cfg(target_os = "linux")]
mod board;
#[cfg(windows)]
#[path = "board_absent.rs"]
mod board;
mod entry;
#[cfg(target_os = "linux")]
pub mod ipc;
mod object;
mod pool;
mod rounds;
mod timestamps;

pub use entry::*;
pub use object::{Attributes, Event};
pub use pool::*;
pub use timestamps::*;
