//! The host thread of a queue, for its host tasks and the submissions that wait for the host.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use zeusm_process::Mutex;

use super::user_code;
use crate::error::{Error, Result};
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
        sent.map_err(|_| Error::NoThread(io::ErrorKind::BrokenPipe.into()))
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
        .map_err(Error::NoThread)?;
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
