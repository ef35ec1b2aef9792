//! What an operation shows of its execution by the native runtime.

use std::sync::Arc;

use crate::abi::result::ZeResult;

/// The completion event of an enqueued command.
pub trait NativeEvent: Send + Sync {
    /// Has the end of the command reported to [`ended`](super::sequence::ended) with this key, possibly during this call. `false`
    /// when the runtime refuses.
    fn watch(&self, key: u64) -> bool;
    /// Flushes the queue, so that the command is started even if no thread waits for it.
    fn flush(&self);
    /// Waits for it; the calling thread helps to execute it.
    fn wait(&self);
    /// Its start and end in nanoseconds of our clock, once it has ended.
    fn times(&self) -> Option<(u64, u64)>;
}

/// The result of enqueueing a command.
pub struct Enqueued {
    /// Its completion event; `None` when there was nothing to execute.
    pub event: Option<Arc<dyn NativeEvent>>,
    /// The error, if one ended the enqueueing of the command or of its remainder.
    pub outcome: ZeResult,
}
