//! Memory: allocations of the machine's own memory, found by any pointer into them.
//!
//! [`allocate`] takes bytes from `backing` and enters them in `ledger` and `map`; a [`Span`] is a range of bytes that a
//! command touches, and its [`Pin`] keeps the allocation alive until the command is complete.

mod allocate;
mod allocation;
mod backing;
mod fork;
mod ledger;
mod map;
mod span;
mod uses;

pub use allocate::{Request, allocate, import};
pub use allocation::{Allocation, Pin};
pub use backing::{
    Export, MOST_ALIGNMENT, PAGE, Record, can_be_exported, is_memory_file, read_record,
};
pub use fork::{hold, inherit, release};
pub use map::{find, remove, remove_context};
pub use span::Span;
