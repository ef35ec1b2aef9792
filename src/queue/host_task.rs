//! Host tasks: events that the host signals, for operations to wait for something that is no event of their context.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;

use super::RawQueue;
use crate::error::Result;
use crate::event::Event;
use crate::process::Mutex;

type Task = Box<dyn FnOnce() + Send>;

/// One thread for the host tasks of a queue, started when there is one. The queue is ordered, so that its tasks wait for
/// each other makes nothing later than it would be anyway.
#[derive(Default)]
pub(super) struct Worker(Mutex<Option<mpsc::Sender<Task>>>);

/// Signals the event when the task is over, whichever way that comes about.
struct Signal(Event);

impl RawQueue {
    /// An event that is complete once `task` has returned. It runs on a thread of the queue's own, after the tasks
    /// before it, and must not hold the queue, which waits for it in the end.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with Level Zero's answer.
    pub fn host_task(&self, task: impl FnOnce() + Send + 'static) -> Result<Event> {
        let list = self.list()?;
        let event = list.events.take()?;
        let signal = Signal(event.clone());
        list.worker.run(Box::new(move || {
            let _signal = signal;
            task();
        }));
        Ok(event)
    }
}

impl Worker {
    /// Hands the task to the thread; runs it here when there can be no thread.
    fn run(&self, task: Task) {
        let mut tasks = self.0.lock();
        if tasks.is_none() {
            let (sender, incoming) = mpsc::channel();
            let started = thread::Builder::new()
                .name("zeusm-host-task".to_owned())
                .spawn(move || serve(&incoming));
            *tasks = started.ok().map(|_| sender);
        }
        let refused = match &*tasks {
            Some(tasks) => tasks.send(task).err().map(|refused| refused.0),
            None => Some(task),
        };
        drop(tasks);
        refused.into_iter().for_each(|task| task());
    }
}

/// The thread's life: it ends with the queue.
fn serve(tasks: &mpsc::Receiver<Task>) {
    for task in tasks {
        // A panic has been reported already, and the tasks after this one are none the worse for it.
        let _ = panic::catch_unwind(AssertUnwindSafe(task));
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // On a device that is lost for good no operation is left to wait.
        self.0.signal_surely();
    }
}
