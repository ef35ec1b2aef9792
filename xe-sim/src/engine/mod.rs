//! The engines: one thread for each exec queue, which runs the command streams that are given to it.

mod alu;
mod blitter;
mod command;
mod queue;
mod registers;
mod streamer;

pub(crate) use queue::{ExecQueue, Job, UserFence};
pub(crate) use registers::{TIMESTAMP_HZ, timestamp};
