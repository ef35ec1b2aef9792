//! What executes a command, for the threads that wait for it.

use std::sync::Arc;

use crate::system::clock::Deadline;

/// The number of an in-order queue of the native runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueNumber(pub usize);

/// Another thread is asked for help until this is dropped.
pub type Request = Box<dyn Send>;

/// The execution of a command, which waiting threads help with.
pub trait Help: Send + Sync {
    /// Helps until the command is complete, there is nothing left to do for this thread, or the deadline is near. `false` when
    /// the thread should sleep.
    fn help(&self, deadline: Deadline) -> bool;

    /// The native queue that the command is in flight in.
    fn queue(&self) -> Option<QueueNumber> {
        None
    }

    /// Asks for another thread's help while the caller sleeps.
    fn request_help(&self) -> Option<Request> {
        None
    }
}

/// The executor of a command.
pub type Executor = Arc<dyn Help>;
