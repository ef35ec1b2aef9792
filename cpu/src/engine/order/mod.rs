//! The order of commands: which of them may begin, and what their completion releases.
//!
//! What begins them ([`Execute`]) and what helps with them ([`Help`]) are traits here, and rooms of their own.

mod behind;
mod changes;
mod fault;
mod help;
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

pub use help::{Executor, Help, InOrder, NATIVE_QUEUES, Native, QueueNumber, Request};
pub use operation::{Enqueued, Kind, NativeEvent, Nothing, Operation, Order, Pins, run, run_all};
pub use priority::{ByPriority, Priority};
pub use ready::{Advance, Ready, ReadyList, dispatch};
pub use sequence::{Execute, Token, ended, execution, register};
pub use signal::{SharedState, Signal};
pub use stream::{DeviceEngine, Stream};
#[cfg(test)]
pub use {behind::Behind, changes::Changes, sequence::Sequence, slots::*};
