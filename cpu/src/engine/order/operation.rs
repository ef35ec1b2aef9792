//! Operations: the work of commands, which a stream executes in some order without knowing what it is.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::SmallVec;

use super::signal::Signal;
use crate::abi::result::ZeResult;
use crate::check::{DeviceCode, Uses};
use crate::memory::Pin;

/// Pins of the allocations that an operation uses.
pub type Pins = SmallVec<[Pin; 2]>;

/// Which earlier commands of the same stream a command follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Only the last barrier.
    Unordered,
    /// All of them.
    AfterEarlier,
    /// Only the last barrier; and all later commands follow it.
    BeforeLater,
    /// All of them; and all later commands follow it.
    Barrier,
}

impl Order {
    /// Whether it follows all of them.
    pub fn follows_all(self) -> bool {
        matches!(self, Self::AfterEarlier | Self::Barrier)
    }

    /// Whether all later commands follow it.
    pub fn holds_later(self) -> bool {
        matches!(self, Self::BeforeLater | Self::Barrier)
    }
}

/// How an operation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No work of its own: it is complete when the commands that it follows are.
    Marker,
    /// Short work, which the thread that finds it ready runs.
    Short,
    /// Workers run its parts.
    Long,
    /// Another runtime executes it, in order with the native commands that were enqueued to the same queue before.
    Native,
    /// As `Native`, but enqueueing it reads memory that earlier commands may write, so those have to be complete.
    NativeDeferred,
}

impl Kind {
    /// Whether it may be enqueued while native commands that it follows are still in flight.
    pub fn is_chainable(self) -> bool {
        matches!(self, Self::Marker | Self::Native)
    }
}

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

/// The work of a command. It may run any number of times: a regular list keeps it, an immediate list runs it once.
pub trait Operation: Any + Send + Sync {
    /// How it is executed.
    fn kind(&self) -> Kind {
        Kind::Short
    }

    /// Pins the memory that the operation touches, from submission to completion.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when memory that it touches has been freed since it was recorded.
    fn pin(&self) -> ZeResult<Pins> {
        Ok(Pins::new())
    }

    /// The memory that it accesses, for the checker.
    fn uses(&self) -> Uses {
        Uses::default()
    }

    /// The signal that its completion resets; the engine does that.
    fn resets(&self) -> Option<Arc<Signal>> {
        None
    }

    /// What is submitted in its place, if it depends on the signals that events have at the submission.
    fn at_submission(&self) -> Option<Arc<dyn Operation>> {
        None
    }

    /// One operation that does what this one and then `next` do, at less expense, if there is one.
    fn joined_with(&self, next: &[Arc<dyn Operation>]) -> Option<Arc<dyn Operation>> {
        let _ = next;
        None
    }

    /// How many parts a long operation has; workers run the parts of one operation at the same time.
    fn parts(&self) -> usize {
        1
    }

    /// Whether each part takes at most a few milliseconds, so that a thread that waits with a timeout may run it.
    fn has_short_parts(&self) -> bool {
        false
    }

    /// Runs part `part` of [`parts`](Self::parts), to its end. Markers and native operations have none.
    ///
    /// # Errors
    /// Reported by waits for the command's signal, and by the next host synchronization with the stream.
    fn run(&self, part: usize) -> ZeResult {
        let _ = part;
        Ok(())
    }

    /// Enqueues a native operation to the native runtime's in-order queue number `queue`.
    fn enqueue(&self, queue: usize) -> Enqueued {
        let _ = queue;
        Enqueued {
            event: None,
            outcome: Ok(()),
        }
    }
}

/// Runs a part on the calling thread; a panic becomes an error of the command.
pub fn run(operation: &dyn Operation, part: usize) -> ZeResult {
    let _device_code = DeviceCode::begin();
    catch_unwind(AssertUnwindSafe(|| operation.run(part)))
        .unwrap_or(Err(sys::ZE_RESULT_ERROR_UNKNOWN))
}

/// Runs all parts on the calling thread, one after another.
pub fn run_all(operation: &dyn Operation) -> ZeResult {
    let parts = 0..operation.parts().max(1);
    parts
        .map(|part| run(operation, part))
        .fold(Ok(()), ZeResult::and)
}

/// The operation of barriers, waits and signals, which does no work.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Operation for Nothing {
    fn kind(&self) -> Kind {
        Kind::Marker
    }
}
