//! Memory: allocations of the machine's own memory, found by any pointer into them.
//!
//! [`allocate()`] accounts for the bytes, also in the device's [`Share`], takes them from `backing` and enters the allocation in
//! `map`. A [`Span`] is a range of bytes that a command touches, and a [`Pin`] keeps its allocation alive until the command is
//! complete.

pub mod accounting;
mod allocate;
mod allocation;
mod backing;
mod indirect;
mod map;
mod pins;
mod room;
mod share;
mod span;
mod touched;

use zeusm_process::AtFork;

pub use allocate::{adopt, allocate, import, import_file};
pub use allocation::{Allocation, Pin, Request, next_id};
pub use backing::{
    Export, MAX_ALIGNMENT, Mapping, Part, Record, ShareError, can_be_exported, exports,
    has_memory_files,
};
#[cfg(target_os = "linux")]
pub use backing::{is_memory_file, memory_file, own_memory_file, reopen};
pub use map::{find, remove, remove_context};
pub use share::{Reserved, Share};
pub use span::Span;
#[cfg(target_os = "linux")]
pub use touched::count_file;

pub use crate::system::PAGE;

/// What a fork holds, in the order in which threads lock it: the map, the arenas, and the export table, whose memory a child replaces by
/// private copies.
pub fn at_fork() -> [&'static dyn AtFork; 3] {
    [map::at_fork(), backing::at_fork(), exports::at_fork()]
}
