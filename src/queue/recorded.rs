//! Operations for the history.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use zeusm_process::Mutex;

use crate::device::Clocks;
use crate::event::Event;
use crate::history::{self, Executed, InFlight, Operation};

/// How many operations are recorded with the lock held, which a submission may wait for.
const BATCH: usize = 8;

/// The operations of a queue that the history does not have yet, in their order. A queue is in-order, so none is complete
/// before the first.
pub(super) struct Recorded {
    device: usize,
    /// The number of the queue in the process.
    queue: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    submissions: VecDeque<Submission>,
    is_registered: bool,
}

/// A submitted operation.
pub(super) struct Submission {
    pub(super) name: &'static str,
    pub(super) size: usize,
    /// The number of the operation in the order of its queue.
    pub(super) number: u64,
    /// The clocks before the submission.
    pub(super) clocks: Clocks,
    pub(super) event: Event,
}

impl Recorded {
    pub(super) fn new(device: usize, queue: u64) -> Arc<Self> {
        Arc::new(Self {
            device,
            queue,
            state: Mutex::default(),
        })
    }

    pub(super) fn add(self: &Arc<Self>, submission: Submission) {
        let mut state = self.state.lock();
        // With the lock, as `history::stop` clears the list after it has switched the recording off.
        if !history::is_recording() {
            return;
        }
        if !state.is_registered {
            state.is_registered = true;
            let queue: Weak<Self> = Arc::downgrade(self);
            history::register(queue);
        }
        let complete = self.note_batch(&mut state);
        state.submissions.push_back(submission);
        drop(state);
        // Without the lock, as the drop of an event may free memory.
        drop(complete);
    }

    /// Records the next complete operations.
    fn note_batch(&self, state: &mut State) -> Vec<Submission> {
        let mut complete = Vec::new();
        while complete.len() < BATCH
            && let Some(first) = state.submissions.front()
            // The events of failed submissions and those of a lost device have no times.
            && !matches!(first.event.is_complete(), Ok(false))
        {
            complete.extend(state.submissions.pop_front());
        }
        let executed = complete.iter().filter_map(|it| self.executed(it)).collect();
        history::executed(executed);
        complete
    }

    fn executed(&self, submission: &Submission) -> Option<Executed> {
        let execution = submission.event.execution(submission.clocks.device);
        let (delay, duration) = execution.ok()?;
        Some(Executed {
            number: submission.number,
            submission: submission.clocks.host,
            delay,
            operation: Operation {
                time: 0,
                duration: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
                name: submission.name,
                size: submission.size,
                device: self.device,
                queue: self.queue,
            },
        })
    }
}

impl InFlight for Recorded {
    fn note_executed(&self) {
        loop {
            let mut state = self.state.lock();
            let complete = self.note_batch(&mut state);
            drop(state);
            if complete.len() < BATCH {
                break;
            }
        }
    }

    fn clear(&self) {
        let submissions = std::mem::take(&mut self.state.lock().submissions);
        drop(submissions);
    }
}
