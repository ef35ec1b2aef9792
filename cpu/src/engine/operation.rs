//! What can be appended to a command list.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::answer::Answer;
use crate::launch::Launch;
use crate::usm::Pin;

/// Allocations that an operation is using: while one lives, its memory stays.
pub type Pins = SmallVec<[Pin; 2]>;

/// One command, ready to run any number of times: a regular list keeps it, an immediate list runs it once.
///
/// Copies, fills and barriers are operations; a kernel launch is one more implementation.
pub trait Operation: Send + Sync {
    /// Whether it takes so little time that the thread which appends it may run it at once.
    fn is_short(&self) -> bool {
        true
    }

    /// Keeps alive what the operation touches, from submission to completion.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when memory that it touches has been freed since it was recorded.
    fn pin(&self) -> Answer<Pins> {
        Ok(Pins::new())
    }

    /// How many parts the operation has; workers run the parts of one operation at the same time.
    fn parts(&self) -> usize {
        1
    }

    /// Whether all it does is to tell that what comes before it is over: to signal its event, or a fence.
    fn is_marker(&self) -> bool {
        false
    }

    /// The operation as something that OpenCL runs by itself, if it is that; then it has no parts for workers to run.
    fn as_launch(&self) -> Option<&Launch> {
        None
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
}

impl Operation for Arc<dyn Operation> {
    fn is_short(&self) -> bool {
        (**self).is_short()
    }

    fn pin(&self) -> Answer<Pins> {
        (**self).pin()
    }

    fn parts(&self) -> usize {
        (**self).parts()
    }

    fn is_marker(&self) -> bool {
        (**self).is_marker()
    }

    fn as_launch(&self) -> Option<&Launch> {
        (**self).as_launch()
    }

    fn share(self) -> Arc<dyn Operation> {
        self
    }

    fn run(&self, part: usize) -> Answer {
        (**self).run(part)
    }
}

/// The operation that does nothing: barriers, waits and signals are made of it.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Operation for Nothing {
    fn is_marker(&self) -> bool {
        true
    }

    fn run(&self, _part: usize) -> Answer {
        Ok(())
    }
}
