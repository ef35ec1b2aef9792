//! Launches in OpenCL's hands: the engine's native commands.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use level_zero_sys as sys;

use super::Launch;
use crate::abi::result::Answer;
use crate::engine::{Completion, Enqueued, LANES, NativeEvent};
use crate::opencl::{self, Queue, Runtime};

/// The queue of a lane. Queues are made when they are needed and never released.
struct LaneQueue {
    queue: OnceLock<Queue>,
    /// How many large launches are in it.
    large: AtomicUsize,
}

impl LaneQueue {
    fn queue(&self) -> Answer<&Queue> {
        if let Some(queue) = self.queue.get() {
            return Ok(queue);
        }
        let runtime = Runtime::get().map_err(|_| sys::ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE)?;
        let queue = Queue::new(runtime).map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
        // The engine enqueues to one lane from one thread at a time, so no queue is made in vain.
        Ok(self.queue.get_or_init(|| queue))
    }
}

static QUEUES: [LaneQueue; LANES] = [const {
    LaneQueue {
        queue: OnceLock::new(),
        large: AtomicUsize::new(0),
    }
}; LANES];

/// The end of the last launch of a command.
struct InFlight {
    event: opencl::Event,
    lane: &'static LaneQueue,
    /// How many of the command's launches are large.
    large: usize,
}

/// Hands the launches of a command to the queue of `lane`, up to the first one that is refused.
pub fn enqueue<L: Borrow<Launch>>(
    lane: usize,
    launches: impl IntoIterator<Item = Answer<L>>,
) -> Enqueued {
    let lane = &QUEUES[lane % LANES];
    let (mut last, mut large) = (None, 0);
    let outcome = launches.into_iter().try_for_each(|launch| {
        let launch = launch?;
        let launch = launch.borrow();
        if !launch.is_empty() {
            last = Some(launch.give(lane.queue()?)?);
            large += usize::from(launch.is_large());
        }
        Ok(())
    });
    let event = last.map(|event| {
        lane.large.fetch_add(large, Ordering::Relaxed);
        Arc::new(InFlight { event, lane, large }) as Arc<dyn NativeEvent>
    });
    Enqueued {
        event,
        fault: outcome.err(),
    }
}

impl NativeEvent for InFlight {
    fn watch(&self, completion: Completion) -> bool {
        opencl::is_host();
        let (lane, large) = (self.lane, self.large);
        let told = self.event.tell(move |outcome| {
            opencl::note_worker();
            lane.large.fetch_sub(large, Ordering::Relaxed);
            completion.complete(outcome.map_err(|_| sys::ZE_RESULT_ERROR_UNKNOWN));
        });
        if told.is_err() {
            lane.large.fetch_sub(large, Ordering::Relaxed);
        }
        told.is_ok()
    }

    fn flush(&self) {
        if let Ok(queue) = self.lane.queue() {
            // A queue that cannot be flushed cannot be waited for either, and the launch ends with an error.
            let _ = queue.flush();
        }
    }

    fn wait(&self) {
        opencl::is_host();
        // How it ended is told by the callback.
        let _ = if self.lane.large.load(Ordering::Relaxed) > 0 {
            opencl::beside_the_workers(|| self.event.wait())
        } else {
            self.event.wait()
        };
    }

    fn times(&self) -> Option<(u64, u64)> {
        self.event.times().map(|times| (times.start, times.end))
    }
}
