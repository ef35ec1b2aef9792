//! Host tasks: functions on a host thread whose completion is an event, on which operations can wait.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, ThreadId};

use super::{RawQueue, user_code};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::process::{Mutex, Section, wait_at_exit};

pub(super) type Task = Box<dyn FnOnce() + Send>;

/// The thread for a queue's host tasks, started with the first one. The queue is in-order, so executing its tasks
/// sequentially causes no delay.
#[derive(Default)]
pub(super) struct Worker(Mutex<Option<Running>>);

/// A thread that has been started, and ends with the sender.
struct Running {
    tasks: mpsc::Sender<Task>,
    thread: ThreadId,
}

/// Signals the event when dropped: after the task has returned, has panicked, or was dropped without running.
struct Signal {
    event: Event,
    /// The task's, once it has returned.
    answer: Result<()>,
}

impl RawQueue {
    /// Runs `task` on a host thread of the queue, after the tasks before it. The returned event completes when it has
    /// returned. If a task drops the queue's last clone while operations of the queue wait for tasks, that drop does not wait,
    /// as this thread has to submit them.
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
        let running = match &mut *tasks {
            Some(running) => running,
            none => none.insert(start()?),
        };
        let sent = running.tasks.send(task);
        // A task that is not sent is dropped with what it owns, which may be the queue.
        drop(tasks);
        sent.map_err(|_| Error::NoThread {
            cause: io::ErrorKind::BrokenPipe.into(),
        })
    }

    /// Whether the caller is a task.
    pub(super) fn is_this_thread(&self) -> bool {
        let running = self.0.lock();
        let this = thread::current().id();
        running
            .as_ref()
            .is_some_and(|running| running.thread == this)
    }
}

/// Starts a thread that runs the tasks until the sender is dropped.
fn start() -> Result<Running> {
    // The thread outlives the main program.
    static AT_EXIT: AtomicBool = AtomicBool::new(false);
    if !AT_EXIT.swap(true, Ordering::Relaxed) {
        wait_at_exit();
    }
    let (sender, tasks) = mpsc::channel();
    let thread = thread::Builder::new()
        .name("zeusm-host-task".to_owned())
        .spawn(move || run_all(&tasks))
        .map_err(|cause| Error::NoThread { cause })?;
    Ok(Running {
        tasks: sender,
        thread: thread.thread().id(),
    })
}

/// Runs the tasks until the queue is dropped.
fn run_all(tasks: &mpsc::Receiver<Task>) {
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
