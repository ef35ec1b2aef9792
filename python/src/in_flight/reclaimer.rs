//! The reclaimer: a thread that drops the operands of complete operations, also if the program never waits for their events.
//! Before the interpreter exits, it waits for the operations in flight.

use std::mem::{self, ManuallyDrop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::prelude::*;

use super::wait::SLICE;
use crate::interpreter::detach;
use zeusm::Queue;
use zeusm_process::{Condvar, Local, Mutex};

/// The interval between two polls of the thread: the initial one and the maximum.
const INTERVALS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));

/// The queues with operations in flight, and the thread that reclaims their operands.
///
/// The thread polls instead of waiting for events, as drivers implement waits by spinning.
#[derive(Default)]
struct Reclaimer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// A queue stays in this list until it is idle, so that the drop of another reference to it never blocks, which matters
    /// most while the GIL is held.
    queues: Vec<Queue>,
    thread: Option<JoinHandle<()>>,
}

/// The reclaimer of this process.
static RECLAIMER: Local<Reclaimer> = Local::new();
/// Set when the interpreter is about to exit, and never reset.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Has the thread reclaim the operands that a queue retains. The caller must not hold the GIL, as the drop of operands may
/// acquire it.
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
    // The thread does not run, so this waits for the operations.
    state.queues.retain(|known| known != queue);
    drop(state);
    let _ = queue.wait();
}

/// Drops the operands of all complete operations now.
pub(crate) fn reclaim(py: Python<'_>) {
    detach(py, || {
        let queues = RECLAIMER
            .get()
            .map_or_else(Vec::new, |it| it.state.lock().queues.clone());
        queues.iter().for_each(|queue| queue.reclaim());
    });
}

/// At the exit of the interpreter, waits for all operations in flight, and drops their operands.
///
/// # Errors
/// The exception of a signal handler. What is in flight then, and its operands, stay as they are.
pub(crate) fn drain(py: Python<'_>) -> PyResult<()> {
    let queues = detach(py, || {
        EXITING.store(true, Ordering::Relaxed);
        let reclaimer = RECLAIMER.get_or_default();
        let State { queues, thread } = mem::take(&mut *reclaimer.state.lock());
        reclaimer.changed.notify_all();
        // The panic hook has reported a panic of the thread.
        let _ = thread.map(JoinHandle::join);
        // The drop of a queue waits for its operations.
        ManuallyDrop::new(queues)
    });
    for queue in &*queues {
        // The wait fails on a lost device, which executes no operations any more.
        while let Ok(false) = detach(py, || queue.wait_timeout(Some(SLICE))) {
            py.check_signals()?;
        }
    }
    detach(py, || drop(ManuallyDrop::into_inner(queues)));
    Ok(())
}

impl Reclaimer {
    /// Starts the thread if it does not run; returns whether it runs.
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
            // Without a wait for drops on other threads, which would delay those of other operands.
            queues.iter().for_each(|queue| queue.drop_complete());
            let mut state = self.state.lock();
            let (idle, busy) = mem::take(&mut state.queues)
                .into_iter()
                .partition(|queue: &Queue| queue.is_reclaimed());
            state.queues = busy;
            drop(state);
            // Outside the lock, as this may drop the last owner of a queue.
            drop::<Vec<Queue>>(idle);
        }
    }
}
