//! The queues of the native runtime, which executes kernels, and what is in flight in them.

mod in_flight;
mod queue;
mod wait;

pub use queue::NativeQueues;
#[cfg(all(test, loom))]
pub use wait::Waiter;
