//! Unified shared memory: allocations of the machine's own memory, found by any pointer into them.

mod allocate;
mod allocation;
mod backing;
mod fork;
mod free;
pub mod ipc;
mod ledger;
mod map;
mod query;
mod span;
mod uses;

pub use allocate::{device, host, shared};
pub use allocation::{Allocation, Pin};
pub use fork::{hold, inherit, release};
pub use free::{free, free_all, free_with_policy};
pub use query::{address_range, properties};
pub use span::Span;
