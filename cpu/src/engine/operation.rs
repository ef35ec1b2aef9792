//! What can be submitted to a stream.

use std::sync::Arc;

use smallvec::SmallVec;

use super::native::Enqueued;
use crate::abi::result::Answer;
use crate::memory::Pin;

/// Allocations that an operation is using: while one lives, its memory stays.
pub type Pins = SmallVec<[Pin; 2]>;

/// How an operation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It does nothing itself: its completion tells that everything it follows is complete.
    Marker,
    /// It takes so little time that the thread which finds it ready runs it.
    Short,
    /// Workers run its parts.
    Long,
    /// Another runtime executes it, in order with the native commands that were enqueued to the same lane before.
    Native,
    /// As `Native`, but to enqueue it takes memory that earlier commands may write, so those have to be complete.
    NativeDeferred,
}

impl Kind {
    /// Whether it may be handed on while native commands that it follows are still in flight.
    pub fn is_chainable(self) -> bool {
        matches!(self, Self::Marker | Self::Native)
    }
}

/// One command, ready to run any number of times: a regular list keeps it, an immediate list runs it once.
pub trait Operation: Send + Sync {
    /// How it is executed.
    fn kind(&self) -> Kind {
        Kind::Short
    }

    /// Keeps alive what the operation touches, from submission to completion.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when memory that it touches has been freed since it was recorded.
    fn pin(&self) -> Answer<Pins> {
        Ok(Pins::new())
    }

    /// How many parts a long operation has; workers run the parts of one operation at the same time.
    fn parts(&self) -> usize {
        1
    }

    /// The operation where several can hold it.
    fn share(self) -> Arc<dyn Operation>
    where
        Self: Sized + 'static,
    {
        Arc::new(self)
    }

    /// Runs part `part` of [`parts`](Self::parts), to its end.
    ///
    /// # Errors
    /// Reported by the next host synchronization with the stream.
    fn run(&self, part: usize) -> Answer;

    /// Hands a native operation to the other runtime's in-order queue number `lane`.
    fn enqueue(&self, lane: usize) -> Enqueued {
        let _ = lane;
        Enqueued::default()
    }
}

impl Operation for Arc<dyn Operation> {
    fn kind(&self) -> Kind {
        (**self).kind()
    }

    fn pin(&self) -> Answer<Pins> {
        (**self).pin()
    }

    fn parts(&self) -> usize {
        (**self).parts()
    }

    fn share(self) -> Arc<dyn Operation> {
        self
    }

    fn run(&self, part: usize) -> Answer {
        (**self).run(part)
    }

    fn enqueue(&self, lane: usize) -> Enqueued {
        (**self).enqueue(lane)
    }
}

/// The operation that does nothing: barriers, waits and signals are made of it.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Operation for Nothing {
    fn kind(&self) -> Kind {
        Kind::Marker
    }

    fn run(&self, _part: usize) -> Answer {
        Ok(())
    }
}
