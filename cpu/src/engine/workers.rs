//! The engine of this process: the threads that run long operations, the lanes, and how a thread moves commands on.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;

use super::command::{Token, Work};
use super::native::Lane;
use super::waiter::Waiter;
use crate::process::sync::{Condvar, Mutex};
use crate::system::processor;

/// How many in-order queues of the other runtime there are: so many independent sequences of kernels can overlap.
pub const LANES: usize = 16;

/// What a fork's child has to have anew.
pub struct Engine {
    state: Mutex<State>,
    work: Condvar,
    lanes: Vec<Lane>,
    /// What is to be dropped by a thread that may call the other runtime.
    retired: Mutex<Vec<Box<dyn Send>>>,
    has_retired: AtomicBool,
    /// Where jobs go in a simulation, which has no threads.
    #[cfg(test)]
    pub jobs: Option<Mutex<VecDeque<Job>>>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Job>,
    /// Threads that wait for work or are about to look for it.
    idle: usize,
    threads: usize,
}

/// What a worker is asked to do.
pub enum Job {
    /// To run parts of a long command.
    Work(Arc<Work>),
    /// To move a command on, on behalf of a thread that must not.
    Advance(Token),
}

impl Job {
    /// Does it.
    pub fn run(self) {
        match self {
            Self::Work(work) => {
                work.run();
            }
            Self::Advance(token) => dispatch(vec![token]),
        }
    }
}

/// The engine of this process, null until it is needed. Engines are never freed.
static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// The commands that this thread is about to move on, while it is at it.
    static READY: RefCell<Option<VecDeque<Token>>> = const { RefCell::new(None) };
    /// Whether this thread is in a callback of the other runtime.
    static FOREIGN: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
thread_local! {
    /// The engine of a simulation that this thread runs.
    pub static SIMULATED: Cell<Option<&'static Engine>> = const { Cell::new(None) };
}

/// The most threads there will be: a few more than processors, as memory may keep one waiting.
fn most_threads() -> usize {
    processor::count() + 2
}

/// The engine.
pub fn engine() -> &'static Engine {
    #[cfg(test)]
    if let Some(simulated) = SIMULATED.get() {
        return simulated;
    }
    let current = ENGINE.load(Ordering::Acquire);
    // SAFETY: ENGINE holds null or a leaked box.
    if let Some(engine) = unsafe { current.as_ref() } {
        return engine;
    }
    let made: *mut Engine = Box::leak(Engine::new());
    match ENGINE.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the box has just been leaked.
        Ok(_) => unsafe { &*made },
        // SAFETY: ENGINE holds a leaked box. The one made in vain stays, too, as a race at the start is rare.
        Err(theirs) => unsafe { &*theirs },
    }
}

/// Replaces the engine as a whole, in the child after a fork: the threads of the parent are not there, and its locks may
/// be held for ever. What was in flight in the parent is never completed in the child.
pub fn forget() {
    ENGINE.store(ptr::null_mut(), Ordering::Release);
}

impl Engine {
    /// An engine without threads.
    pub fn new() -> Box<Self> {
        let waiter: &'static Waiter = Box::leak(Box::default());
        Box::new(Self {
            state: Mutex::default(),
            work: Condvar::new(),
            lanes: (0..LANES).map(|index| Lane::new(index, waiter)).collect(),
            retired: Mutex::default(),
            has_retired: AtomicBool::new(false),
            #[cfg(test)]
            jobs: None,
        })
    }

    /// All lanes.
    pub fn lanes(&'static self) -> &'static [Lane] {
        &self.lanes
    }

    /// A lane for a stream: one that no other has, or that the fewest have.
    pub fn assign_lane(&'static self) -> &'static Lane {
        let lane = self.lanes.iter().min_by_key(|lane| lane.streams());
        lane.unwrap_or(&self.lanes[0]).assign()
    }

    /// Gives a job to `helpers` threads.
    fn enqueue(&'static self, helpers: usize, mut job: impl FnMut() -> Job) {
        #[cfg(test)]
        if let Some(jobs) = &self.jobs {
            return jobs.lock().push_back(job());
        }
        let mut state = self.state.lock();
        for _ in 0..helpers {
            state.ready.push_back(job());
        }
        let waking = state.idle.min(helpers);
        while state.ready.len() > state.idle && state.threads < most_threads() {
            let worker = thread::Builder::new().name("zeusm-cpu".to_owned());
            if worker.spawn(|| self.serve()).is_err() {
                break;
            }
            state.threads += 1;
            state.idle += 1;
        }
        // Where the system refuses threads, this one does the work: late is better than never.
        let alone = if state.threads == 0 {
            mem::take(&mut state.ready)
        } else {
            VecDeque::new()
        };
        drop(state);
        for _ in 0..waking {
            self.work.notify_one();
        }
        alone.into_iter().for_each(Job::run);
    }

    /// A worker's life.
    fn serve(&'static self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.ready.pop_front() {
                state.idle -= 1;
                drop(state);
                job.run();
                self.release_retired();
                state = self.state.lock();
                state.idle += 1;
            } else {
                state = self.work.wait(state);
            }
        }
    }

    fn release_retired(&self) {
        if self.has_retired.load(Ordering::Relaxed) && !is_foreign() {
            let retired = {
                let mut retired = self.retired.lock();
                self.has_retired.store(false, Ordering::Relaxed);
                mem::take(&mut *retired)
            };
            drop(retired);
        }
    }
}

/// Has workers run a long command.
pub fn work(work: Arc<Work>) {
    let mut work = Some(work);
    let helpers = work
        .as_ref()
        .map_or(1, |work| work.parts().min(processor::count()));
    let mut left = helpers;
    engine().enqueue(helpers, || {
        left -= 1;
        let this = if left == 0 { work.take() } else { work.clone() };
        Job::Work(this.expect("one for each helper"))
    });
}

/// Has a worker move a command on.
pub fn advance(token: Token) {
    let mut token = Some(token);
    engine().enqueue(1, || Job::Advance(token.take().expect("one helper")));
}

/// Moves commands on that are ready.
///
/// The end of one may make the next one ready, and that one the next; so what comes up meanwhile is left to the outermost
/// call, and no chain is too long for the stack.
pub fn dispatch(ready: Vec<Token>) {
    if ready.is_empty() {
        return;
    }
    let mut ready = Some(ready);
    let outermost = READY.try_with(|queue| {
        let mut queue = queue.borrow_mut();
        let is_outermost = queue.is_none();
        queue
            .get_or_insert_default()
            .extend(ready.take().into_iter().flatten());
        is_outermost
    });
    match outermost {
        Ok(true) => {}
        Ok(false) => return,
        // The thread is ending, and what it keeps for itself is gone: workers take over.
        Err(_) => return ready.into_iter().flatten().for_each(advance),
    }
    let next = || {
        READY.with_borrow_mut(|queue| {
            let token = queue.as_mut()?.pop_front();
            if token.is_none() {
                *queue = None;
            }
            token
        })
    };
    while let Some(token) = next() {
        token.advance();
    }
}

/// Runs `work` in a callback of the other runtime, which must not be called from there.
pub fn foreign(work: impl FnOnce()) {
    let before = FOREIGN.replace(true);
    work();
    FOREIGN.set(before);
}

/// Whether this thread is in a callback of the other runtime.
pub fn is_foreign() -> bool {
    FOREIGN.get()
}

/// Drops an object that may hold the last reference to one of the other runtime: later, and on a thread that is neither
/// in a callback of that runtime nor holds a lock.
pub fn retire(object: impl Send + 'static) {
    let engine = engine();
    engine.retired.lock().push(Box::new(object));
    engine.has_retired.store(true, Ordering::Relaxed);
}

/// As [`retire`], but at once where that may be: for callers that hold no lock.
pub fn retire_or_drop(object: impl Send + 'static) {
    if is_foreign() {
        retire(object);
    }
}

/// Drops what was retired in callbacks.
pub fn release_retired() {
    if let Some(engine) = current() {
        engine.release_retired();
    }
}

/// The engine, if there has been need of one.
fn current() -> Option<&'static Engine> {
    #[cfg(test)]
    if let Some(simulated) = SIMULATED.get() {
        return Some(simulated);
    }
    // SAFETY: ENGINE holds null or a leaked box.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}
