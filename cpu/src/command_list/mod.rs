//! Command lists: regular ones record commands, immediate ones submit them, or have a graph record them.

mod access;
mod append;
mod capture;
mod create;
mod execute;
pub mod graph;
mod list;
mod memory;
mod mutable;
mod query;
mod recording;
mod submit;

pub use append::*;
pub use create::*;
pub use execute::*;
pub use list::{CommandList, KernelList, Submitter};
pub use memory::*;
pub use mutable::{is_mutable_list, next_command_id, update_signal, update_waits};
pub use query::*;
