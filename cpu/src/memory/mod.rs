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
mod request;
mod room;
mod share;
mod span;
mod touched;

pub use allocate::{adopt, allocate, import, import_file};
pub use allocation::{Allocation, Pin};
pub use backing::{
    Export, MAX_ALIGNMENT, Mapping, Part, Record, ShareError, can_be_exported, exports,
    is_memory_file, memory_file, own_memory_file, reopen,
};
pub use map::{find, remove, remove_context};
pub use request::{Request, next_id};
pub use share::{Reserved, Share};
pub use span::Span;
pub use touched::count_file;

pub use crate::system::PAGE;

/// Blocks allocation, free and export in other threads until this thread calls [`parent`] or [`child`].
///
/// Lock order: the map, the arenas, the export table.
pub fn prepare() {
    map::at_fork().prepare();
    backing::at_fork().prepare();
    exports::prepare();
}

/// Undoes [`prepare`], in the parent.
pub fn parent() {
    exports::parent();
    backing::at_fork().parent();
    map::at_fork().parent();
}

/// Undoes [`prepare`], in the child, and replaces memory that the parent shares with other processes by private copies.
pub fn child() {
    exports::child();
    backing::at_fork().parent();
    map::at_fork().parent();
}
