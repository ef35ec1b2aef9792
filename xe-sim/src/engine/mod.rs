//! The engines: one thread per exec queue, which executes the batches submitted to it.

mod alu;
mod blitter;
mod command;
mod queue;
mod registers;
mod state;
mod streamer;
mod table;

pub(crate) use queue::{ExecQueue, Job, UserFence};
pub(crate) use registers::{TIMESTAMP_HZ, timestamp};
pub(crate) use state::EngineClass;
