//! Exec queues: a FIFO of submitted batches and the thread that executes them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;

use super::state::{EngineClass, State};
use super::streamer::{Halt, Streamer};
use crate::faults::Loss;
use crate::machine::Model;
use crate::memory::{AddressSpace, write_user};
use crate::report::{log, say};

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

/// An exec queue. Dropping it stops its thread at the next command that checks for it, and joins the thread.
pub(crate) struct ExecQueue {
    engine: Arc<State>,
    /// Taken when the queue is dropped.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl ExecQueue {
    pub(crate) fn new(
        space: Arc<AddressSpace>,
        class: EngineClass,
        model: &'static Model,
        lost: Arc<OnceLock<Loss>>,
    ) -> Result<Self, Errno> {
        let engine = Arc::new(State {
            space,
            class,
            model,
            stopping: AtomicBool::new(false),
            banned: AtomicBool::new(false),
            lost,
        });
        let (jobs, submitted) = mpsc::channel();
        let own = Arc::clone(&engine);
        let thread = thread::Builder::new()
            .name("xe-sim engine".to_owned())
            .spawn(move || run(&own, submitted))
            .map_err(|_| Errno::AGAIN)?;
        Ok(Self {
            engine,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    pub(crate) fn submit(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job); // The thread ends after the queue.
        }
    }

    pub(crate) fn is_banned(&self) -> bool {
        self.engine.is_banned()
    }
}

impl Drop for ExecQueue {
    fn drop(&mut self) {
        self.engine.stopping.store(true, Ordering::Release);
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(engine: &State, jobs: Receiver<Job>) {
    let mut streamer = Streamer::new(engine);
    for job in jobs {
        if !engine.is_banned() {
            log(format_args!("batch at {:#x}", job.batch));
            halt(engine, streamer.run(job.batch));
        }
        // The kernel also signals the fences of banned queues; a waiter queries the ban property.
        for fence in job.fences {
            fence.signal();
        }
    }
}

fn halt(engine: &State, end: Result<(), Halt>) {
    let ban = |why: &dyn std::fmt::Display| {
        say(format_args!("{why}: the queue is banned"));
        engine.banned.store(true, Ordering::Release);
    };
    match end {
        Ok(()) | Err(Halt::Stopped) => {}
        Err(Halt::Hung) => {
            thread::sleep(HANG_TIMEOUT);
            ban(&"the engine hangs");
        }
        Err(Halt::Lost(how)) => {
            say(format_args!("the device is lost: {how:?}"));
            let _ = engine.lost.set(how); // The first loss is final.
        }
        Err(Halt::Failed(error)) => ban(&error),
    }
}

#[cfg(test)]
mod tests;
