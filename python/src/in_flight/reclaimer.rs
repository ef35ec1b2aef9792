//! A thread that drops the operands of complete operations soon after, also where the program never asks for the events,
//! and waits for the operations in flight before the interpreter exits.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use zeusm::Queue;
use zeusm::process::{Condvar, Local, Mutex};

/// How long the thread sleeps between two polls: at first, and at most.
const INTERVALS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));

/// The queues with operations in flight, and the thread that reclaims their operands.
///
/// The thread polls rather than waits for events, as drivers wait by spinning.
#[derive(Default)]
struct Reclaimer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Held until they are idle, so that the drop of a queue elsewhere never has to wait, least of all with the GIL held.
    queues: Vec<Queue>,
    thread: Option<JoinHandle<()>>,
}

/// This process's.
static RECLAIMER: Local<Reclaimer> = Local::new();
/// Set once and for all when the interpreter is about to exit.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Registers with `atexit` to wait for the operations in flight.
pub(crate) fn drain_at_exit(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    REGISTERED.get_or_try_init(py, || {
        let drain = wrap_pyfunction!(drain, py)?;
        py.import("atexit")?
            .call_method1("register", (drain,))
            .map(drop)
    })?;
    Ok(())
}

/// Reclaims what a queue retains once it is complete. To be called without the GIL, as the drop of operands may take it.
pub(crate) fn reclaim_later(queue: &Queue) {
    if queue.is_reclaimed() {
        return;
    }
    let reclaimer = RECLAIMER.get_or_default();
    let mut state = reclaimer.state.lock();
    if !state.queues.iter().any(|known| known == queue) {
        state.queues.push(queue.clone());
    }
    if !EXITING.load(Ordering::Relaxed) && reclaimer.has_thread(&mut state) {
        drop(state);
        reclaimer.changed.notify_all();
        return;
    }
    // No thread will reclaim it later, so wait now.
    state.queues.retain(|known| known != queue);
    drop(state);
    let _ = queue.wait();
}

/// Waits for all operations in flight, and drops their operands.
#[pyfunction]
fn drain(py: Python<'_>) {
    py.detach(|| {
        EXITING.store(true, Ordering::Relaxed);
        let reclaimer = RECLAIMER.get_or_default();
        let State { queues, thread } = mem::take(&mut *reclaimer.state.lock());
        reclaimer.changed.notify_all();
        // A panic of the thread has been reported already.
        let _ = thread.map(JoinHandle::join);
        for queue in queues {
            // The wait fails on a lost device, where nothing runs any more.
            let _ = queue.wait();
        }
    });
}

impl Reclaimer {
    /// Whether there is a thread, which is started if need be.
    fn has_thread(&'static self, state: &mut State) -> bool {
        if state.thread.is_none() {
            let name = "zeusm-reclaimer".to_owned();
            let thread = thread::Builder::new().name(name);
            state.thread = thread.spawn(|| self.run()).ok();
        }
        state.thread.is_some()
    }

    fn run(&self) {
        let mut interval = INTERVALS.0;
        while !EXITING.load(Ordering::Relaxed) {
            let queues = {
                let mut state = self.state.lock();
                if state.queues.is_empty() && !EXITING.load(Ordering::Relaxed) {
                    state = self.changed.wait(state);
                    interval = INTERVALS.0;
                }
                state.queues.clone()
            };
            thread::sleep(interval);
            interval = INTERVALS.1.min(interval * 2);
            queues.iter().for_each(|queue| queue.reclaim());
            let mut state = self.state.lock();
            let (idle, busy) = mem::take(&mut state.queues)
                .into_iter()
                .partition(|queue: &Queue| queue.is_reclaimed());
            state.queues = busy;
            drop(state);
            // Without the lock: this may drop the last owner of a queue.
            drop::<Vec<Queue>>(idle);
        }
    }
}
