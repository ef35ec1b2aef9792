//! What executes a command, for the threads that wait for it.

use std::ptr;
use std::sync::Arc;

use crate::abi::result::ZeResult;
use crate::system::clock::Deadline;

/// The number of native queues, and so of independent sequences of kernels that can overlap.
pub const NATIVE_QUEUES: usize = 16;

/// The number of an in-order queue of the native runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// An in-order queue of the native runtime, whose commands have positions.
pub trait InOrder: Send + Sync {
    /// Its number.
    fn number(&self) -> QueueNumber;

    /// The command at a position has ended. May be called in a callback of the native runtime, as it does not call that.
    fn ended(&'static self, position: u64, outcome: ZeResult);

    /// As [`Help::help`], with the command at a position.
    fn help(&'static self, position: u64, deadline: Deadline) -> bool;

    /// As [`Help::request_help`].
    fn request_help(&'static self) -> Request;
}

/// A native command in flight.
#[derive(Clone, Copy)]
pub struct Native {
    /// The queue that it is in.
    pub queue: &'static dyn InOrder,
    /// Its position there.
    pub position: u64,
}

impl Native {
    /// A number that tells which one it is, for [`ended`](super::sequence::ended).
    pub fn key(self) -> u64 {
        self.position * NATIVE_QUEUES as u64 + self.queue.number().0 as u64
    }
}

/// The executor of a command.
#[derive(Clone)]
pub enum Executor {
    /// The native runtime.
    Native(Native),
    /// Other threads, with the help of those that wait.
    Shared(Arc<dyn Help>),
}

impl Executor {
    /// Whether it is the same one.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Native(one), Self::Native(other)) => {
                one.position == other.position && ptr::addr_eq(one.queue, other.queue)
            }
            (Self::Shared(one), Self::Shared(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// The native queue that the command is in flight in.
    pub fn queue(&self) -> Option<QueueNumber> {
        match self {
            Self::Native(native) => Some(native.queue.number()),
            Self::Shared(_) => None,
        }
    }

    /// As [`Help::help`].
    pub fn help(&self, deadline: Deadline) -> bool {
        match self {
            Self::Native(native) => native.queue.help(native.position, deadline),
            Self::Shared(shared) => shared.help(deadline),
        }
    }

    /// As [`Help::request_help`].
    pub fn request_help(&self) -> Option<Request> {
        match self {
            Self::Native(native) => Some(native.queue.request_help()),
            Self::Shared(shared) => shared.request_help(),
        }
    }
}
