//! What an operation shows of its execution by the native runtime.

use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::result::ZeResult;

/// The completion event of an enqueued command.
pub trait NativeEvent: Send + Sync {
    /// Registers `completion` to be called when the command has ended, possibly during this call. `false` when the
    /// runtime refuses.
    fn watch(&self, completion: Completion) -> bool;
    /// Flushes the queue, so that the command is started even if no thread waits for it.
    fn flush(&self);
    /// Waits for it; the calling thread helps to execute it.
    fn wait(&self);
    /// Its start and end in nanoseconds of our clock, once it has ended.
    fn times(&self) -> Option<(u64, u64)>;
}

/// The result of enqueueing a command.
#[derive(Default)]
pub struct Enqueued {
    /// Its completion event; `None` when there was nothing to execute.
    pub event: Option<Arc<dyn NativeEvent>>,
    /// The error that ended the enqueueing of the command or of its remainder.
    pub fault: Option<sys::ze_result_t>,
}

/// A queue that is told of the ends of its commands.
pub trait Ends: Send + Sync {
    /// The command at a position has ended. May be called in a callback of the native runtime.
    fn ended(&'static self, position: u64, outcome: ZeResult);
}

/// Reports the end of a command to its queue.
pub struct Completion {
    queue: &'static dyn Ends,
    position: u64,
}

impl Completion {
    /// That of the command at a position of a queue.
    pub fn new(queue: &'static dyn Ends, position: u64) -> Self {
        Self { queue, position }
    }

    /// Reports that the command has ended. May be called in a callback, as it does not call the native runtime.
    pub fn complete(self, outcome: ZeResult) {
        self.queue.ended(self.position, outcome);
    }
}
