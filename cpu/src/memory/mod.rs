//! Memory: allocations of the machine's own memory, found by any pointer into them.
//!
//! [`allocate()`] accounts for the bytes, also in the device's [`Share`], takes them from `backing` and enters the allocation in
//! `map`. A [`Span`] is a range of bytes that a command touches, and a [`Pin`] keeps its allocation alive until the command is
//! complete.

pub mod accounting;
mod allocate;
mod allocation;
mod at_fork;
mod backing;
mod indirect;
mod map;
mod pins;
mod request;
mod reserved;
mod room;
mod share;
mod span;
mod touched;

pub use allocate::{allocate, import, import_file};
pub use allocation::{Allocation, Pin};
pub use at_fork::{child, parent, prepare};
pub use backing::{
    Export, MAX_ALIGNMENT, Mapping, Part, Record, ShareError, can_be_exported, exports,
    is_memory_file, memory_file, own_memory_file, reopen,
};
pub use map::{find, remove, remove_context};
pub use request::{Request, next_id};
pub use reserved::Reserved;
pub use share::Share;
pub use span::Span;
pub use touched::count_file;

pub use crate::system::PAGE;
