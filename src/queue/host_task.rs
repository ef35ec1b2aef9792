//! Host tasks: functions on a host thread whose completion is an event, on which operations can wait.

use std::mem;

use super::raw::RawQueue;
use crate::error::{Error, Result};
use crate::event::Event;

/// Signals the event when dropped: after the task has returned, has panicked, or was dropped without running.
struct Signal {
    event: Event,
    /// The task's, once it has returned.
    answer: Result<()>,
}

impl RawQueue {
    /// Runs `task` on a host thread of the queue, after the tasks before it. The returned event completes when it has
    /// returned. If a task drops the last clone of a queue, this one or another, while operations of that queue wait for tasks,
    /// the drop does not wait, as they may wait for this thread.
    ///
    /// A task must not wait for operations that wait for its own event or a later task: neither would end. A blocking copy of
    /// the task's own queue is such an operation, if an operation before it waits for the task.
    ///
    /// # Errors
    /// [`Error::NoThread`] when the thread cannot be started, [`Error::Call`] with Level Zero's result.
    pub fn host_task(&self, task: impl FnOnce() + Send + 'static) -> Result<Event> {
        self.try_host_task(move || {
            task();
            Ok(())
        })
    }

    /// As [`host_task`](Self::host_task), with a task that may fail: the event then has [`Error::NotExecuted`], and so have the
    /// operations that were submitted after it and wait for it, as they would use results of the task.
    ///
    /// # Errors
    /// As there.
    pub fn try_host_task(
        &self,
        task: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Event> {
        let list = self.list()?;
        let event = list.events.take()?;
        let signal = Signal {
            event: event.clone(),
            answer: Err(Error::Panicked),
        };
        list.worker.send(Box::new(move || {
            let mut signal = signal;
            signal.answer = task();
        }))?;
        Ok(event)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        match mem::replace(&mut self.answer, Ok(())) {
            // If all attempts fail, the device is lost: no operation waits for the event any more.
            Ok(()) => self.event.signal_with_retries(),
            failed => self.event.set_submitted(failed),
        }
    }
}
