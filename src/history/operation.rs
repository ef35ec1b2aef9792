//! The operations of queues that were executed, and the queues that have operations in flight.

use std::sync::Weak;
use std::time::{Duration, Instant};

use zeusm_process::Registry;

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

/// An operation that was executed, with its number in the order of its queue.
#[derive(Clone, Debug)]
pub(crate) struct Executed {
    pub number: u64,
    /// When it was submitted.
    pub submission: Instant,
    /// From the submission to the start.
    pub delay: Duration,
    /// Its time is set by the recorder.
    pub operation: Operation,
}

/// The operations in the order of their start, of which the clocks' resolution makes some late.
///
/// The clocks of the device and of the host are compared at each submission, and a start is late by the time between the two
/// readings. As a queue executes one operation after the other, a start is at most the start of the next one less the duration.
pub(super) fn in_order(mut executed: Vec<Executed>) -> Vec<Operation> {
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

/// The operations of a queue that were submitted during the recording and are not recorded yet.
pub(crate) trait InFlight: Send + Sync {
    /// Records those that are complete.
    fn note_executed(&self);

    /// Forgets all.
    fn clear(&self);
}

static IN_FLIGHT: Registry<dyn InFlight> = Registry::new();

/// Adds a queue, whose operations are recorded before a recording is returned.
pub(crate) fn register(queue: Weak<dyn InFlight>) {
    IN_FLIGHT.register(queue);
}

pub(super) fn note_executed() {
    for queue in IN_FLIGHT.objects() {
        queue.note_executed();
    }
}

pub(super) fn clear() {
    for queue in IN_FLIGHT.objects() {
        queue.clear();
    }
}
