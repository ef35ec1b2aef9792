//! The engine: orders commands and executes them.
//!
//! # The rooms
//!
//! - `order`: signals, streams, commands, and which of them may begin. It knows what executes commands by traits only: `Execute`,
//!   which the initialisation registers, and `Help`, by which a waiting thread helps with a command's execution.
//! - `native`: the queues of the native runtime, what is in flight in them, and the thread that waits in that runtime.
//! - `execute`: the workers, and the choice of who executes a command. It uses `native`, and not the other way.
//!
//! # The model
//!
//! A [`Stream`] (a queue, or an immediate list) is a first-in first-out sequence of commands. A command is an
//! [`Operation`] with an [`Order`], a wait list of [`Signal`]s, and a signal of its own. It goes through these stages:
//!
//! 1. **Held**: a command that it follows is not complete. `Order` determines which commands it follows: all earlier
//!    ones, or the last barrier only. A barrier follows all earlier commands, and all later ones follow the barrier.
//! 2. **Released**: there is one `Token` of it, whose owner advances the command, first past the signals of its wait
//!    list, one after another. Each signal's state counts at that moment, not at submission. A signal that is not set
//!    owns the token until it is set.
//! 3. **Executing**: by the thread that owns the token (short operations), by workers (long ones), or natively.
//! 4. **Done**: its memory is unpinned, then the signal that it resets is reset and its own is set, then the stream releases
//!    the commands that follow it.
//!
//! The streams of a device may share a [`DeviceEngine`], a sequence of its own; every command is a barrier there, and in these
//! streams. A command enters it, in place of its stream, if it cannot be stuck there: its stream is empty, and each signal of
//! its wait list will be set when all commands in engines are complete, whatever the submitted commands outside of engines have
//! done until then. For this, each signal counts the changes that submitted commands are to make (`changes`). All others wait in
//! their streams and delay no other stream. So commands in engines wait for commands that were submitted before them only, and
//! each engine comes to its end. Changes are counted under the engine's lock: who reads them from the signal enters later.
//!
//! A regular event has one signal. If processes share the event, the signal of each refers to one [`SharedState`], and each
//! process watches it for its own commands and threads that wait. A counter-based event has a new signal for each command that
//! signals it, and a wait refers to the latest one at the time of the append.
//!
//! # Native commands
//!
//! Kernels are executed by a native runtime, which the engine knows as [`NativeEvent`]s and `NativeQueue`s: in-order
//! queues that live as long as the process. A *native* command is enqueued to a queue when all commands that it follows
//! are complete or in flight in that same queue. This is the only case in which a command is passed on before those
//! that it follows are complete, and it is correct because the queue is in order. *Markers* (barriers, signals, fences)
//! may follow native commands in the same way: they are entries of the queue's list and completed in turn. All other
//! commands wait until those that they follow are complete. The commands of a queue are completed in order, so a thread
//! that sees one complete sees the earlier ones complete.
//!
//! A callback of the native runtime does not call that runtime, and takes only locks that are never held in a call to
//! it: commands to be enqueued are left to a worker, and native objects are dropped later (`order::retired`). At most
//! one thread waits inside the native runtime at a time (`native::wait`).
//!
//! # Threads
//!
//! Of the commands that a thread or the workers have to begin, those of a [`Priority`] are begun before those of a lower one.
//! Native commands that have been enqueued are the native runtime's.
//!
//! A token is owned by one thread or one lock-protected list at a time, so advancing a command needs no lock of its own. No
//! lock is held while an operation runs, except for a queue's `enqueue_lock` while a command is enqueued. Lock order: a queue's
//! `enqueue_lock`, its `in_flight`, the token of a long command, then a stream's or an engine's, then one of the leaves: the
//! locks of signals, the waiter and the workers. A panic in an operation is an error of its command. Host threads that wait
//! (`order::wait`) help with the execution or sleep.
//!
//! # How it is tested
//!
//! `tests::simulation` runs seeded random programs on the engine with a fake native runtime and compares them with a reference.
//! `tests::models` runs signals and the waiter's role in every interleaving of a few threads.
//!
//! A fork's child starts with a new engine.

mod execute;
mod native;
mod order;
#[cfg(test)]
mod tests;

pub use execute::begin;
pub use order::{
    DeviceEngine, Enqueued, Kind, NATIVE_QUEUES, NativeEvent, Nothing, Operation, Order, Pins,
    Priority, SharedState, Signal, Stream, dispatch, ended,
};
