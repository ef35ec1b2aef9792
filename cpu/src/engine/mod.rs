//! Execution: operations, the signals they wait for and give, and the workers that run them.
//!
//! A [`Stream`] is what a queue or an immediate list submits to. An operation that is short and has nothing to
//! wait for runs in its caller. Any other becomes a [`Task`] that workers run once everything it waits
//! for has happened; no thread ever blocks on behalf of a task. A kernel becomes a [`Flight`]: OpenCL runs it, and no
//! worker is needed. OpenCL also keeps the order of kernels with nothing but barriers between them: a path.

mod flight;
mod helper;
mod operation;
mod path;
mod seat;
mod signal;
mod stream;
mod task;
mod workers;

pub use flight::Flight;
pub use operation::{Nothing, Operation, Pins};
pub use signal::Signal;
pub use stream::{Order, Stream};
pub use task::Task;
pub use workers::{dispatch, forget, processors};
