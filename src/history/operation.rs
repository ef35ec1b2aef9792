//! The operations of queues: submitted, and executed once their times are known.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::{Duration, Instant};

/// An operation that a device executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// When the device began it, in nanoseconds since the start of the recording.
    pub time: u64,
    /// How long the device executed it, in nanoseconds.
    pub duration: u64,
    /// What it was: `"copy"` or `"fill"`.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// The address of the device's handle.
    pub device: usize,
    /// The number of the queue in the process, from 1 on. The operations of a queue do not overlap.
    pub queue: u64,
}

/// An operation with its number in the order of its queue.
#[derive(Debug)]
pub(super) struct Executed {
    pub number: u64,
    pub operation: Operation,
}

/// The operations in the order of their start.
///
/// The clocks of the device and of the host are compared for each operation, and a start is late by the time between the two
/// readings. As a queue executes one operation after the other, a start is at most the start of the next one less the duration.
pub(super) fn in_order(executed: &VecDeque<Executed>) -> Vec<Operation> {
    let mut executed: Vec<_> = executed.iter().collect();
    executed.sort_by_key(|it| (it.operation.queue, it.number));
    let mut operations: Vec<_> = executed.into_iter().map(|it| it.operation).collect();
    let mut next: Option<Operation> = None;
    for operation in operations.iter_mut().rev() {
        if let Some(next) = next.filter(|next| next.queue == operation.queue) {
            let latest = next.time.saturating_sub(operation.duration);
            operation.time = operation.time.min(latest);
        }
        next = Some(*operation);
    }
    operations.sort_by_key(|operation| operation.time);
    operations
}

/// The execution of an operation by a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    /// From the submission to the start.
    pub delay: Duration,
    pub duration: Duration,
}

/// An operation in flight.
pub(crate) trait InFlight: Send {
    /// The execution once the operation is complete; `None` if its times are not known.
    fn execution(&self) -> Poll<Option<Execution>>;
}

/// A submitted operation.
pub(crate) struct Submission {
    pub name: &'static str,
    pub size: usize,
    pub device: usize,
    pub queue: u64,
    /// The number of the operation in the order of its queue.
    pub number: u64,
    pub time: Instant,
    pub in_flight: Box<dyn InFlight>,
}

/// The submitted operations whose completion was not seen yet, in the order of their submission.
#[derive(Default)]
pub(super) struct Submitted(VecDeque<Submission>);

impl Submitted {
    pub(super) fn add(&mut self, submission: Submission) {
        self.0.push_back(submission);
    }

    /// Takes the complete operations up to the first one in flight, which costs one query more than there are such operations.
    pub(super) fn take_oldest(&mut self) -> Vec<(Submission, Option<Execution>)> {
        let mut complete = Vec::new();
        while let Some(first) = self.0.front()
            && let Poll::Ready(execution) = first.in_flight.execution()
        {
            complete.extend(self.0.pop_front().map(|first| (first, execution)));
        }
        complete
    }

    /// Takes all complete operations.
    pub(super) fn take_complete(&mut self) -> Vec<(Submission, Option<Execution>)> {
        let mut complete = Vec::new();
        for submission in std::mem::take(&mut self.0) {
            match submission.in_flight.execution() {
                Poll::Ready(execution) => complete.push((submission, execution)),
                Poll::Pending => self.0.push_back(submission),
            }
        }
        complete
    }
}
