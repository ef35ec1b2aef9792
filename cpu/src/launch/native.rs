//! Launches as native commands of the engine, enqueued to OpenCL.

use std::sync::Arc;

use level_zero_sys as sys;
use zeusm_process::Lazy;

use crate::abi::result::ZeResult;
use crate::check;
use crate::engine::{Enqueued, NATIVE_QUEUES, NativeEvent, ended};
use crate::opencl::{self, Observer, Queue, Runtime};

/// The OpenCL queues behind the native queues of the engine, each created on first use and never released.
static QUEUES: [Lazy<Queue>; NATIVE_QUEUES] = [const { Lazy::new() }; NATIVE_QUEUES];

fn queue_of(queue: &'static Lazy<Queue>) -> ZeResult<&'static Queue> {
    if let Some(queue) = queue.get() {
        return Ok(queue);
    }
    let runtime = Runtime::get().map_err(|_| sys::ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE)?;
    let made = Queue::new(runtime).map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    // The engine enqueues to a queue from one thread at a time, so there is no race to create it.
    Ok(queue.get_or_make(|| made))
}

/// The launches of a command.
struct InFlight {
    queue: &'static Queue,
    /// Of the last launch.
    event: opencl::Event,
    /// Of the first one, if there are several.
    first: Option<opencl::Event>,
}

/// Enqueues the launches of a command to the native queue number `queue`, up to the first one that is refused. One without
/// work-items has no event.
pub fn enqueue<L: FnOnce(&Queue) -> ZeResult<Option<opencl::Event>>>(
    queue: usize,
    launches: impl IntoIterator<Item = L>,
) -> Enqueued {
    check::kernel_begins();
    let mut launched: Option<InFlight> = None;
    let outcome = queue_of(&QUEUES[queue % NATIVE_QUEUES]).and_then(|queue| {
        launches.into_iter().try_for_each(|launch| {
            if let Some(event) = launch(queue)? {
                let before = launched.take();
                launched = Some(InFlight {
                    queue,
                    event,
                    first: before.map(|before| before.first.unwrap_or(before.event)),
                });
            }
            Ok(())
        })
    });
    if launched.is_none() {
        check::kernel_ends();
    }
    Enqueued {
        event: launched.map(|launched| Arc::new(launched) as Arc<dyn NativeEvent>),
        outcome,
    }
}

/// Reports the ends of launches to the engine.
struct Ends;

impl Observer for Ends {
    fn ended(key: u64, outcome: Result<(), opencl::Error>) {
        check::kernel_ends();
        ended(key, outcome.map_err(|_| sys::ZE_RESULT_ERROR_UNKNOWN));
    }
}

impl NativeEvent for InFlight {
    fn watch(&self, key: u64) -> bool {
        let registered = self.event.on_complete::<Ends>(key);
        if registered.is_err() {
            check::kernel_ends();
        }
        registered.is_ok()
    }

    fn flush(&self) {
        // A queue that cannot be flushed cannot be waited for either, and the launch ends with an error.
        let _ = self.queue.flush();
    }

    fn wait(&self) {
        // The callback reports the outcome.
        let _ = self.event.wait();
    }

    fn times(&self) -> Option<(u64, u64)> {
        let (start, end) = self.event.times()?;
        let first = self.first.as_ref();
        Some((first.map_or(Some(start), |it| Some(it.times()?.0))?, end))
    }
}
