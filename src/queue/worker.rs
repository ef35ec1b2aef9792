//! The host thread of a queue, for its host tasks and the submissions that wait for the host.

use std::cell::Cell;
use std::io;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use zeusm_process::Mutex;

use crate::error::{Error, Result};
use crate::exit;

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
        exit::wait_at_exit();
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
        exit::inside(|| run_user_code(task));
    }
}

/// Calls the user's code where a panic must not unwind: through the thread for host tasks, or through the submission of an
/// operation, whose caller would drop operands that are in flight. A panic ends here; the panic hook has reported it.
pub(super) fn run_user_code(code: impl FnOnce()) {
    let Err(payload) = panic::catch_unwind(AssertUnwindSafe(code)) else {
        return;
    };
    // The payload is the user's as well, and its drop may panic with another one.
    if let Err(another) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}
