//! What is under way: operands are let go soon after the work on them is done, whether or not anybody asks, and the
//! interpreter does not end before.

use std::mem;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::Queue;

/// How long the thread sleeps between two looks: at first, and at most.
const NAPS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));

/// The queues with work under way, and the thread that looks after them.
///
/// It looks from time to time rather than wait for events: drivers wait by looking all the time.
struct Watch {
    /// Kept until they are idle, so that nobody else's drop of a queue has to wait, least of all with the GIL held.
    queues: Vec<Queue>,
    thread: Option<JoinHandle<()>>,
    /// Whose these are: a child has neither its parent's threads nor its parent's work.
    process: u32,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch {
    queues: Vec::new(),
    thread: None,
    process: 0,
});
static CHANGED: Condvar = Condvar::new();
/// Set for good when the interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Has the interpreter wait in the end for what will be under way.
pub(super) fn prepare(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    REGISTERED.get_or_try_init(py, || {
        let finish = wrap_pyfunction!(finish, py)?;
        py.import("atexit")?
            .call_method1("register", (finish,))
            .map(drop)
    })?;
    Ok(())
}

/// Looks after a queue that keeps operands. Without the GIL, as letting go of them may take it.
pub(super) fn watch(queue: &Queue) {
    if queue.is_idle() {
        return;
    }
    let mut watch = WATCH.lock();
    watch.forget_parent();
    if !watch.queues.iter().any(|known| known == queue) {
        watch.queues.push(queue.clone());
    }
    if !ENDING.load(Ordering::Relaxed) && watch.is_served() {
        drop(watch);
        CHANGED.notify_one();
        return;
    }
    // Nobody will look after it later, so now.
    watch.queues.retain(|known| known != queue);
    drop(watch);
    let _ = queue.wait();
}

/// Waits for everything that is under way, and lets go of it.
#[pyfunction]
fn finish(py: Python<'_>) {
    py.detach(|| {
        ENDING.store(true, Ordering::Relaxed);
        let (queues, thread) = {
            let mut watch = WATCH.lock();
            watch.forget_parent();
            (mem::take(&mut watch.queues), watch.thread.take())
        };
        CHANGED.notify_one();
        // It does not panic, and if it did, that has been reported.
        let _ = thread.map(JoinHandle::join);
        for queue in queues {
            // On a lost device nothing runs any more.
            let _ = queue.wait();
        }
    });
}

impl Watch {
    /// Whether there is a thread, which is started if need be.
    fn is_served(&mut self) -> bool {
        if self.thread.is_none() {
            let name = "zeusm-under-way".to_owned();
            self.thread = thread::Builder::new().name(name).spawn(look).ok();
        }
        self.thread.is_some()
    }

    /// In a child after a fork: what the parent has under way never ends here.
    fn forget_parent(&mut self) {
        let here = process::id();
        if self.process != here {
            mem::forget((mem::take(&mut self.queues), self.thread.take()));
            self.process = here;
        }
    }
}

/// The thread's life.
fn look() {
    let mut nap = NAPS.0;
    while !ENDING.load(Ordering::Relaxed) {
        let queues = {
            let mut watch = WATCH.lock();
            if watch.queues.is_empty() && !ENDING.load(Ordering::Relaxed) {
                CHANGED.wait(&mut watch);
                nap = NAPS.0;
            }
            watch.queues.clone()
        };
        thread::sleep(nap);
        nap = NAPS.1.min(nap * 2);
        queues.iter().for_each(Queue::collect);
        let mut watch = WATCH.lock();
        let (idle, busy) = mem::take(&mut watch.queues)
            .into_iter()
            .partition(Queue::is_idle);
        watch.queues = busy;
        drop(watch);
        // The last owner of a queue may be here.
        drop::<Vec<Queue>>(idle);
    }
}
