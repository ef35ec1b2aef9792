//! Launches as native commands of the engine, enqueued to OpenCL.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;
use zeusm_process::Lazy;

use super::Launch;
use super::brief::Measured;
use crate::abi::result::ZeResult;
use crate::check;
use crate::engine::{Completion, Enqueued, NATIVE_QUEUES, NativeEvent};
use crate::opencl::{self, Queue, Runtime};

/// The OpenCL queue behind a native queue of the engine, created on first use and never released.
struct LaunchQueue {
    opencl: Lazy<Queue>,
    /// How many large launches are in flight in it.
    large: AtomicUsize,
}

impl LaunchQueue {
    fn get(&self) -> ZeResult<&Queue> {
        if let Some(queue) = self.opencl.get() {
            return Ok(queue);
        }
        let runtime = Runtime::get().map_err(|_| sys::ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE)?;
        let queue = Queue::new(runtime).map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
        // The engine enqueues to a queue from one thread at a time, so there is no race to create it.
        Ok(self.opencl.get_or_make(|| queue))
    }
}

static QUEUES: [LaunchQueue; NATIVE_QUEUES] = [const {
    LaunchQueue {
        opencl: Lazy::new(),
        large: AtomicUsize::new(0),
    }
}; NATIVE_QUEUES];

/// The launches of a command.
struct InFlight {
    /// Of the last launch.
    event: opencl::Event,
    /// Of the first one, if there are several.
    first: Option<opencl::Event>,
    queue: &'static LaunchQueue,
    /// How many of the command's launches are large.
    large: usize,
    /// Measures the command's only launch.
    measured: Option<Measured>,
}

/// Enqueues the launches of a command to the native queue number `queue`, up to the first one that is refused.
pub fn enqueue<L: Borrow<Launch>>(
    queue: usize,
    launches: impl IntoIterator<Item = ZeResult<L>>,
) -> Enqueued {
    let queue = &QUEUES[queue % NATIVE_QUEUES];
    let (mut first, mut last, mut large, mut measured) = (None, None, 0, None);
    if check::is_on() {
        check::kernel_begins();
    }
    let outcome = launches.into_iter().try_for_each(|launch| {
        let launch = launch?;
        let launch = launch.borrow();
        if !launch.is_empty() {
            let event = launch.enqueue_to(queue.get()?)?;
            measured = Measured::new(launch).filter(|_| last.is_none());
            let before = last.replace(event);
            if first.is_none() {
                first = before;
            }
            large += usize::from(launch.is_large());
        }
        Ok(())
    });
    if last.is_none() && check::is_on() {
        check::kernel_ends();
    }
    let event = last.map(|event| {
        queue.large.fetch_add(large, Ordering::Relaxed);
        Arc::new(InFlight {
            event,
            first,
            queue,
            large,
            measured,
        }) as Arc<dyn NativeEvent>
    });
    Enqueued {
        event,
        fault: outcome.err(),
    }
}

impl NativeEvent for InFlight {
    fn watch(&self, completion: Completion) -> bool {
        opencl::register_host_thread();
        let (queue, large) = (self.queue, self.large);
        let registered = self.event.on_complete(move |outcome| {
            opencl::register_worker();
            queue.large.fetch_sub(large, Ordering::Relaxed);
            if check::is_on() {
                check::kernel_ends();
            }
            completion.complete(outcome.map_err(|_| sys::ZE_RESULT_ERROR_UNKNOWN));
        });
        if registered.is_err() {
            if check::is_on() {
                check::kernel_ends();
            }
            queue.large.fetch_sub(large, Ordering::Relaxed);
        }
        registered.is_ok()
    }

    fn flush(&self) {
        if let Ok(queue) = self.queue.get() {
            // A queue that cannot be flushed cannot be waited for either, and the launch ends with an error.
            let _ = queue.flush();
        }
    }

    fn wait(&self) {
        opencl::register_host_thread();
        // The callback reports the outcome.
        let _ = if self.queue.large.load(Ordering::Relaxed) > 0 {
            opencl::off_worker_processors(|| self.event.wait())
        } else {
            self.event.wait()
        };
    }

    fn ended(&self) {
        if let Some(measured) = &self.measured
            && let Some(times) = self.event.times()
        {
            measured.took(times);
        }
    }

    fn times(&self) -> Option<(u64, u64)> {
        let end = self.event.times()?;
        let begin = match &self.first {
            Some(first) => first.times()?,
            None => end,
        };
        Some((begin.start, end.end))
    }
}
