//! What executes a command, for the threads that wait for it.

use std::ptr;
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

    /// Asks for another thread's help while the caller sleeps.
    fn request_help(&self) -> Option<Request> {
        None
    }
}

/// The executor of a command.
#[derive(Clone)]
pub struct Executor {
    help: Arc<dyn Help>,
    queue: Option<QueueNumber>,
}

impl Executor {
    /// What executes a command.
    pub fn new(help: Arc<dyn Help>) -> Self {
        Self { help, queue: None }
    }

    /// What executes a native command that is in flight in a queue.
    pub fn native(help: Arc<dyn Help>, queue: QueueNumber) -> Self {
        let queue = Some(queue);
        Self { help, queue }
    }

    /// The native queue that the command is in flight in.
    pub fn queue(&self) -> Option<QueueNumber> {
        self.queue
    }

    /// [`Help::help`].
    pub fn help(&self, deadline: Deadline) -> bool {
        self.help.help(deadline)
    }

    /// [`Help::request_help`].
    pub fn request_help(&self) -> Option<Request> {
        self.help.request_help()
    }

    /// Whether it is the executor of the same command.
    pub fn is(&self, other: &Self) -> bool {
        ptr::addr_eq(Arc::as_ptr(&self.help), Arc::as_ptr(&other.help))
    }
}
