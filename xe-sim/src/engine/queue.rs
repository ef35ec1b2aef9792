//! Exec queues: a FIFO of submitted batches and the thread that executes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::state::{EngineClass, State};
use super::streamer::{Halt, Streamer};
use crate::faults::Loss;
use crate::machine::Model;
use crate::memory::{AddressSpace, write_user};
use crate::report::{self, log, say};

/// The job timeout before a hung queue is banned. The kernel's timeout is several seconds; a short one keeps tests fast.
const HANG_TIMEOUT: Duration = Duration::from_millis(100);

/// A user fence: a value that the kernel writes to user memory when a batch completes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserFence {
    pub(crate) address: u64,
    pub(crate) value: u64,
}

impl UserFence {
    pub(crate) fn signal(self) {
        if !write_user(self.address, &self.value.to_le_bytes()) {
            say(format_args!(
                "a user fence at {:#x} is not writable",
                self.address
            ));
        }
    }
}

/// A submitted batch and the fences that its completion signals.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) batch: u64,
    pub(crate) fences: Vec<UserFence>,
}

/// State shared by the engine thread and the kernel interface.
struct Shared {
    engine: State,
    jobs: Mutex<VecDeque<Job>>,
    came: Condvar,
}

/// An exec queue. Dropping it stops its thread at the next command that checks for it, and joins the thread.
pub(crate) struct ExecQueue {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl ExecQueue {
    pub(crate) fn new(
        space: Arc<AddressSpace>,
        class: EngineClass,
        model: &'static Model,
        lost: Arc<OnceLock<Loss>>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            engine: State {
                space,
                class,
                model,
                stopping: AtomicBool::new(false),
                banned: AtomicBool::new(false),
                lost,
            },
            jobs: Mutex::default(),
            came: Condvar::new(),
        });
        let engine = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("xe-sim engine".to_owned())
            .spawn(move || report::guarded("an engine", || run(&engine)))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    pub(crate) fn submit(&self, job: Job) {
        self.shared.jobs.lock().push_back(job);
        self.shared.came.notify_one();
    }

    pub(crate) fn is_banned(&self) -> bool {
        self.shared.engine.is_banned()
    }
}

impl Drop for ExecQueue {
    fn drop(&mut self) {
        // Set under the lock: otherwise the thread could check the flag before the store, sleep after the notification, and
        // never wake up.
        let jobs = self.shared.jobs.lock();
        self.shared.engine.stopping.store(true, Ordering::Release);
        drop(jobs);
        self.shared.came.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn next(shared: &Shared) -> Option<Job> {
    let mut jobs = shared.jobs.lock();
    while jobs.is_empty() {
        if shared.engine.stopping.load(Ordering::Acquire) {
            return None;
        }
        shared.came.wait(&mut jobs);
    }
    jobs.pop_front()
}

fn run(shared: &Shared) {
    let mut streamer = Streamer::new(&shared.engine);
    while let Some(job) = next(shared) {
        if !shared.engine.is_banned() {
            log(format_args!("batch at {:#x}", job.batch));
            halt(shared, streamer.run(job.batch));
        }
        // The kernel also signals the fences of banned queues; a waiter queries the ban property.
        for fence in job.fences {
            fence.signal();
        }
    }
}

fn halt(shared: &Shared, end: Result<(), Halt>) {
    let ban = |why: &dyn std::fmt::Display| {
        say(format_args!("{why}: the queue is banned"));
        shared.engine.banned.store(true, Ordering::Release);
    };
    match end {
        Ok(()) | Err(Halt::Stopped) => {}
        Err(Halt::Hung) => {
            thread::sleep(HANG_TIMEOUT);
            ban(&"the engine hangs");
        }
        Err(Halt::Lost(how)) => {
            say(format_args!("the device is lost: {how:?}"));
            let _ = shared.engine.lost.set(how); // The first loss is final.
        }
        Err(Halt::Failed(error)) => ban(&error),
    }
}

#[cfg(test)]
mod tests;
