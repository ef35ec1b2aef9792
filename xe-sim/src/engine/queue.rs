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
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    use super::*;
    use crate::machine;
    use crate::memory::{Backing, Buffer};
    use crate::report::in_child;

    const BATCH: u64 = 0x10000;
    const BATCH_BUFFER_END: u32 = 0x0a << 23;
    const MI_FLUSH_DW: u32 = 0x26 << 23;

    /// Whether the queue completes a batch of these dwords. The queue is banned if the batch faults.
    fn completes(class: EngineClass, dwords: &[u32]) -> bool {
        let space = Arc::new(AddressSpace::default());
        let buffer = Arc::new(Buffer::new(4096, None).unwrap());
        space.bind(BATCH, 4096, Backing::Buffer(buffer, 0));
        for (at, word) in (BATCH..)
            .step_by(4)
            .zip(dwords.iter().chain(&[BATCH_BUFFER_END]))
        {
            space.store(at, *word).unwrap();
        }
        let model = machine::named("lnl").unwrap().slots[0].model;
        let queue = ExecQueue::new(space, class, model, Arc::default()).unwrap();
        let word = AtomicU64::new(0);
        let fences = vec![UserFence {
            address: word.as_ptr() as u64,
            value: 1,
        }];
        queue.submit(Job {
            batch: BATCH,
            fences,
        });
        let deadline = Instant::now() + Duration::from_secs(30);
        while word.load(Ordering::Acquire) == 0 {
            assert!(Instant::now() < deadline, "the fence is not signalled");
            thread::sleep(Duration::from_millis(1));
        }
        !queue.is_banned()
    }

    #[test]
    fn a_flush_without_a_write_may_have_four_dwords() {
        assert!(completes(EngineClass::Copy, &[MI_FLUSH_DW | 2, 0, 0, 0]));
        assert!(completes(EngineClass::Copy, &[MI_FLUSH_DW | 3, 0, 0, 0, 0]));
    }

    #[test]
    fn a_batch_start_without_its_address_is_reported() {
        let told = in_child(
            "engine::queue::tests::a_batch_start_without_its_address_is_reported",
            || {
                completes(EngineClass::Copy, &[0x31 << 23, 0]);
            },
        );
        assert!(
            told.contains("not simulated: MI_BATCH_BUFFER_START with 2 dwords"),
            "{told}"
        );
    }

    #[test]
    fn each_engine_has_its_own_commands() {
        let test = "engine::queue::tests::each_engine_has_its_own_commands";
        let walker = [&[0x7208_0026][..], &[0; 39]].concat();
        let told = in_child(test, || {
            completes(EngineClass::Copy, &walker);
        });
        let expected = "not simulated: COMPUTE_WALKER on an engine of the class Copy";
        assert!(told.contains(expected), "{told}");
        // A walker without a kernel at its address faults.
        assert!(!completes(EngineClass::Compute, &walker));
    }
}
