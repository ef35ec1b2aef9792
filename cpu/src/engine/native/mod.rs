//! The queues of the native runtime, which executes kernels, and what is in flight in them.

mod in_flight;
mod queue;
mod wait;

pub use queue::NativeQueues;
#[cfg(test)]
pub use {in_flight::InFlight, wait::Waiter};
