//! The order of commands: which of them may begin, and what their completion releases.
//!
//! What begins them ([`Execute`]) and what helps with them ([`Help`]) are traits here, and rooms of their own.

mod behind;
mod changes;
mod dependence;
mod device_engine;
mod fault;
mod help;
mod identity;
mod native_event;
mod operation;
mod pending;
pub mod primitives;
mod priority;
mod ready;
pub mod retired;
mod sequence;
mod signal;
mod slots;
mod stream;
mod wait;

#[cfg(all(test, loom))]
pub use changes::Changes;
pub use dependence::Order;
pub use device_engine::DeviceEngine;
pub use help::{Executor, Help, InOrder, NATIVE_QUEUES, Native, QueueNumber, Request};
pub use native_event::{Enqueued, NativeEvent};
pub use operation::{Kind, Nothing, Operation, Pins, run, run_all};
pub use priority::{ByPriority, Priority};
pub use ready::{Advance, Ready, ReadyList, dispatch};
pub use sequence::{Execute, Token, ended, execution, register};
pub use signal::{SharedState, Signal};
#[cfg(test)]
pub use slots::WINDOW;
pub use stream::Stream;
