//! Execution: what is ordered before what, and who does the work.
//!
//! # The model
//!
//! A [`Stream`] (a queue, or an immediate list) is a first-in first-out sequence of commands. A command is an
//! [`Operation`] with an [`Order`], a wait list of [`Signal`]s, and a signal of its own. It goes through these stages:
//!
//! 1. **Held**: a command that it follows is unfinished. `Order` says which ones it follows: everything before it, or the
//!    last barrier. A barrier follows everything, and everything later follows the barrier.
//! 2. **Released**: there is one [`Token`] of it, and its owner moves the command on. First past the
//!    signals of its wait list, one after another: each is looked at when its turn comes, so the state at that moment
//!    decides, neither the state at submission nor what was to set it then. An unset signal owns the token until it is set.
//! 3. **Executing**: by the thread that owns the token (short operations), by workers (long ones), or natively.
//! 4. **Done**: its memory is let go, then its signal is set, then the stream releases what followed it.
//!
//! An event is one signal for its life. A counter-based event has a new signal for each command that is to signal it, and
//! a wait means the latest one at the time of the append: a value that only grows.
//!
//! # Native commands
//!
//! Kernels are executed by another runtime, which the engine knows as [`NativeEvent`]s and `Lane`s: in-order
//! queues that are made once and live as long as the process. A *native* command is enqueued to a lane when everything
//! that it follows is complete, or is complete but for commands that are in flight in that same lane. That is the only
//! case in which a command is passed on before what it follows has ended, and it is right because the lane is in order.
//! *Markers* (barriers, signals, fences) may follow native commands in a lane in the same way: they stand in the lane's list
//! and are completed when their turn comes. All else waits until what it follows is complete. Commands of a lane are completed
//! in the lane's order, so what sees one complete sees those before it complete.
//!
//! The other runtime's callback takes locks of ours that are never held in a call to that runtime, and does not call it: a
//! command that has to be enqueued is left to a worker, and objects of that runtime are dropped later (`workers::retire`).
//! At most one thread waits inside that runtime at a time (`waiter`).
//!
//! # Threads
//!
//! Tokens are owned by one thread or one lock-protected list at a time, so moving a command on needs no lock of its own. No
//! lock is held while an operation runs, but for a lane's `turn` while one is enqueued. Locks are taken in this order: a
//! lane's `turn`, its `fifo`, the token of a long command, then one of the leaves: a signal's, a stream's, the waiter's, the
//! workers'. A panic in an operation is an error of its command. Host threads that wait (`wait`) sleep until the command is
//! done, or help.
//!
//! # How it is tested
//!
//! `simulation` runs seeded random programs on the engine with a fake native runtime and compares them with a reference.
//!
//! A fork's child starts with a new engine ([`forget`]).

mod command;
mod meeting;
mod native;
mod operation;
mod signal;
#[cfg(test)]
mod simulation;
mod stream;
mod wait;
mod waiter;
mod workers;

pub use command::Token;
pub use native::{Completion, Enqueued, NativeEvent};
pub use operation::{Kind, Nothing, Operation, Pins};
pub use signal::Signal;
pub use stream::{Order, Stream};
pub use workers::{LANES, dispatch, forget};
