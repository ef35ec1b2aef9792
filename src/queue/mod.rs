//! An ordered queue of copies and fills over one immediate command list.
//!
//! [`RawQueue`] takes pointers, which it does not check. [`Queue`] on top of it takes typed memory, and checks its context
//! and device. Operations in flight belong to the process that submitted them: in a fork's child, an inherited queue is
//! empty.
//!
//! The device never waits for the host. Intel's driver executes the operations of all lists of an engine one after the
//! other, so that an operation which waits for the host would delay those that the host waits for, SYCL's included. An
//! operation that depends on a host task is therefore submitted when that is complete, by the queue's thread for host tasks
//! ([`submission`]). So is an operation whose append may wait for the operations before it, as that of a copy which the
//! driver executes on the host.

mod advise;
mod barrier;
mod checked;
mod command_list;
mod copy;
mod host_task;
mod list;
mod operation;
mod overlap;
mod peer;
mod raw;
mod recorded;
mod retained;
#[cfg(target_os = "linux")]
mod shared;
mod submission;
mod worker;

pub use checked::Queue;
pub use copy::Rows;
pub use operation::Operation;
pub use overlap::overlap;
pub use raw::RawQueue;
pub use retained::{with_drops, without_drops};
pub use submission::Completion;
