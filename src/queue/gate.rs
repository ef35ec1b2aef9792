//! Events that the host signals: how an operation waits for something that is no event of its context.

use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::mpsc;
use std::thread;

use parking_lot::Mutex;

use super::Queue;
use crate::Result;
use crate::event::Event;

type Job = Box<dyn FnOnce() + Send>;

/// One thread for the jobs of a queue, started when there is one. The queue is ordered, so that its jobs wait for each
/// other makes nothing later than it would be anyway.
#[derive(Default)]
pub(super) struct Worker(Mutex<Option<Jobs>>);

struct Jobs {
    queue: mpsc::Sender<Job>,
    /// The process whose thread serves: a child has no thread of its parent's.
    process: u32,
}

/// Signals the event when the job is over, whichever way that comes about.
struct Gate(Event);

impl Queue {
    /// An event that is complete once `job` has returned. It runs on a thread of the queue's own, after the jobs before
    /// it, and must not hold the queue, which waits for it in the end.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with Level Zero's answer.
    pub fn gate(&self, job: impl FnOnce() + Send + 'static) -> Result<Event> {
        let event = self.0.events.take()?;
        let gate = Gate(event.clone());
        self.0.gates.run(Box::new(move || {
            let _gate = gate;
            job();
        }));
        Ok(event)
    }
}

impl Worker {
    /// Hands the job to the thread; runs it here when there can be no thread.
    fn run(&self, job: Job) {
        let mut jobs = self.0.lock();
        let here = process::id();
        if jobs.as_ref().is_none_or(|jobs| jobs.process != here) {
            let (queue, incoming) = mpsc::channel();
            let started = thread::Builder::new()
                .name("zeusm-gate".to_owned())
                .spawn(move || serve(&incoming));
            *jobs = started.ok().map(|_| Jobs {
                queue,
                process: here,
            });
        }
        let refused = match &*jobs {
            Some(jobs) => jobs.queue.send(job).err().map(|refused| refused.0),
            None => Some(job),
        };
        drop(jobs);
        refused.into_iter().for_each(|job| job());
    }
}

/// The thread's life: it ends with the queue.
fn serve(jobs: &mpsc::Receiver<Job>) {
    for job in jobs {
        // A panic has been reported already, and the jobs after this one are none the worse for it.
        let _ = panic::catch_unwind(AssertUnwindSafe(job));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // A device that is lost for good has nobody left to wait.
        self.0.signal_surely();
    }
}
