//! What is under way: operands are let go soon after the work on them is done, whether or not anybody asks, and the
//! interpreter does not end before.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use zeusm::Queue;
use zeusm::process::{Condvar, Local, Mutex};

/// How long the thread sleeps between two looks: at first, and at most.
const NAPS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));

/// The queues with work under way, and the thread that looks after them.
///
/// It looks from time to time rather than wait for events: drivers wait by looking all the time.
#[derive(Default)]
struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Kept until they are idle, so that nobody else's drop of a queue has to wait, least of all with the GIL held.
    queues: Vec<Queue>,
    thread: Option<JoinHandle<()>>,
}

/// This process's.
static WATCH: Local<Watch> = Local::new();
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
    let watch = WATCH.get_or_default();
    let mut state = watch.state.lock();
    if !state.queues.iter().any(|known| known == queue) {
        state.queues.push(queue.clone());
    }
    if !ENDING.load(Ordering::Relaxed) && watch.is_served(&mut state) {
        drop(state);
        watch.changed.notify_all();
        return;
    }
    // Nobody will look after it later, so now.
    state.queues.retain(|known| known != queue);
    drop(state);
    let _ = queue.wait();
}

/// Waits for everything that is under way, and lets go of it.
#[pyfunction]
fn finish(py: Python<'_>) {
    py.detach(|| {
        ENDING.store(true, Ordering::Relaxed);
        let watch = WATCH.get_or_default();
        let State { queues, thread } = mem::take(&mut *watch.state.lock());
        watch.changed.notify_all();
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
    fn is_served(&'static self, state: &mut State) -> bool {
        if state.thread.is_none() {
            let name = "zeusm-under-way".to_owned();
            let thread = thread::Builder::new().name(name);
            state.thread = thread.spawn(|| self.look()).ok();
        }
        state.thread.is_some()
    }

    /// The thread's life.
    fn look(&self) {
        let mut nap = NAPS.0;
        while !ENDING.load(Ordering::Relaxed) {
            let queues = {
                let mut state = self.state.lock();
                if state.queues.is_empty() && !ENDING.load(Ordering::Relaxed) {
                    state = self.changed.wait(state);
                    nap = NAPS.0;
                }
                state.queues.clone()
            };
            thread::sleep(nap);
            nap = NAPS.1.min(nap * 2);
            queues.iter().for_each(|queue| queue.collect());
            let mut state = self.state.lock();
            let (idle, busy) = mem::take(&mut state.queues)
                .into_iter()
                .partition(|queue: &Queue| queue.is_idle());
            state.queues = busy;
            drop(state);
            // The last owner of a queue may be here.
            drop::<Vec<Queue>>(idle);
        }
    }
}
