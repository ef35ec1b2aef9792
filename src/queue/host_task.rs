//! Host tasks: functions on a host thread whose completion is an event, on which operations can wait.

use std::cell::Cell;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use zeusm_process::Mutex;

use super::{RawQueue, user_code};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::exit::{Section, wait_at_exit};

pub(super) type Task = Box<dyn FnOnce() + Send>;

/// The thread for a queue's host tasks, started with the first one; it ends when the sender is dropped. The queue is in-order,
/// so executing its tasks sequentially causes no delay.
#[derive(Default)]
pub(super) struct Worker(Mutex<Option<mpsc::Sender<Task>>>);

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is a task of any queue.
pub(super) fn is_task() -> bool {
    IS_WORKER.get()
}

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

impl Worker {
    /// Sends the task to the thread. The caller never runs it: a task may wait for work that needs what the caller holds, a
    /// lock or Python's GIL.
    ///
    /// # Errors
    /// [`Error::NoThread`] when the thread cannot be started.
    pub(super) fn send(&self, task: Task) -> Result<()> {
        let mut tasks = self.0.lock();
        let sender = match &mut *tasks {
            Some(sender) => sender,
            none => none.insert(start()?),
        };
        let sent = sender.send(task);
        // A task that is not sent is dropped with what it owns, which may be the queue.
        drop(tasks);
        sent.map_err(|_| Error::NoThread {
            cause: io::ErrorKind::BrokenPipe.into(),
        })
    }
}

/// Starts a thread that runs the tasks until the sender is dropped.
fn start() -> Result<mpsc::Sender<Task>> {
    // The thread outlives the main program.
    static AT_EXIT: AtomicBool = AtomicBool::new(false);
    if !AT_EXIT.swap(true, Ordering::Relaxed) {
        wait_at_exit();
    }
    let (sender, tasks) = mpsc::channel();
    thread::Builder::new()
        .name("zeusm-host-task".to_owned())
        .spawn(move || run_all(&tasks))
        .map_err(|cause| Error::NoThread { cause })?;
    Ok(sender)
}

/// Runs the tasks until the queue is dropped.
fn run_all(tasks: &mpsc::Receiver<Task>) {
    IS_WORKER.set(true);
    for task in tasks {
        let _section = Section::enter();
        user_code::run(task);
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
