//! The engine of this process: worker threads for long operations, the native queues, and the dispatch of ready
//! commands.

use std::cell::{Cell, RefCell};
#[cfg(test)]
use std::collections::VecDeque;
use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;

use zeusm_process::{Condvar, Mutex};

use super::command::{Token, Work};
use super::native::NativeQueue;
use super::native_wait::Waiter;
use super::primitives::THREAD_STACK;
use super::priority::{ByPriority, Priority};
use crate::system::processor;

/// The number of native queues, and so of independent sequences of kernels that can overlap.
pub const NATIVE_QUEUES: usize = 16;

/// The engine's state, which a fork's child replaces.
pub struct Engine {
    state: Mutex<State>,
    work: Condvar,
    native_queues: Vec<NativeQueue>,
    /// Objects to be dropped by a thread that may call the native runtime.
    retired: Mutex<Vec<Box<dyn Send>>>,
    has_retired: AtomicBool,
    /// The queue of jobs in a simulation, which has no threads.
    #[cfg(test)]
    pub jobs: Option<Mutex<VecDeque<Job>>>,
}

#[derive(Default)]
struct State {
    ready: ByPriority<Job>,
    /// Threads that wait for work or are about to look for it.
    idle: usize,
    threads: usize,
}

/// A job for a worker.
pub enum Job {
    /// Run parts of a long command.
    Work(Arc<Work>),
    /// Advance a command, on behalf of a thread that must not.
    Advance(Token),
}

impl Job {
    fn priority(&self) -> Priority {
        match self {
            Self::Work(work) => work.priority(),
            Self::Advance(token) => token.priority(),
        }
    }

    /// Runs the job.
    pub fn run(self) {
        match self {
            Self::Work(work) => {
                work.run(None);
            }
            Self::Advance(token) => dispatch(vec![token]),
        }
    }
}

/// The engine of this process, created on first use and never freed.
static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// The ready commands that this thread is dispatching.
    static READY: RefCell<Option<ByPriority<Token>>> = const { RefCell::new(None) };
    /// Whether this thread is in a callback of the native runtime.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
thread_local! {
    /// The engine of a simulation that this thread runs.
    pub static SIMULATED: Cell<Option<&'static Engine>> = const { Cell::new(None) };
}

/// The maximal number of threads: a few more than processors, as some may wait for memory.
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
        // SAFETY: ENGINE holds a leaked box. The surplus one is leaked, too, as such a race is rare.
        Err(theirs) => unsafe { &*theirs },
    }
}

/// Replaces the engine in the child of a fork, which has neither the threads of the parent nor the holders of its
/// locks. Commands in flight in the parent are never completed in the child.
pub fn reset() {
    ENGINE.store(ptr::null_mut(), Ordering::Release);
}

impl Engine {
    /// An engine without threads.
    pub fn new() -> Box<Self> {
        let waiter: &'static Waiter = Box::leak(Box::default());
        Box::new(Self {
            state: Mutex::default(),
            work: Condvar::new(),
            native_queues: (0..NATIVE_QUEUES)
                .map(|index| NativeQueue::new(index, waiter))
                .collect(),
            retired: Mutex::default(),
            has_retired: AtomicBool::new(false),
            #[cfg(test)]
            jobs: None,
        })
    }

    /// All native queues.
    pub fn native_queues(&'static self) -> &'static [NativeQueue] {
        &self.native_queues
    }

    /// Assigns a queue to a stream: the one that is assigned to the fewest.
    pub fn assign_native_queue(&'static self) -> &'static NativeQueue {
        let queue = self
            .native_queues
            .iter()
            .min_by_key(|queue| queue.streams());
        queue.unwrap_or(&self.native_queues[0]).assign()
    }

    /// Queues a job for `helpers` threads.
    fn enqueue(&'static self, helpers: usize, mut job: impl FnMut() -> Job) {
        #[cfg(test)]
        if let Some(jobs) = &self.jobs {
            return jobs.lock().push_back(job());
        }
        let mut state = self.state.lock();
        for _ in 0..helpers {
            let job = job();
            state.ready.push(job.priority(), job);
        }
        let waking = state.idle.min(helpers);
        while state.ready.len() > state.idle && state.threads < most_threads() {
            if !self.start_worker(&mut state) {
                break;
            }
        }
        // Where the system refuses to create threads, this thread runs the jobs. It is in no callback, as there are none
        // without a worker.
        let mut alone = if state.threads == 0 {
            mem::take(&mut state.ready)
        } else {
            ByPriority::default()
        };
        drop(state);
        for _ in 0..waking {
            self.work.notify_one();
        }
        while let Some(job) = alone.pop() {
            job.run();
        }
    }

    /// Starts a worker; `false` where the system refuses to create a thread.
    fn start_worker(&'static self, state: &mut State) -> bool {
        let worker = thread::Builder::new()
            .name("zeusm-cpu".to_owned())
            .stack_size(THREAD_STACK);
        let started = worker.spawn(|| self.serve()).is_ok();
        if started {
            state.threads += 1;
            state.idle += 1;
        }
        started
    }

    /// Whether there is a worker, which is started if there is none yet.
    fn has_worker(&'static self) -> bool {
        #[cfg(test)]
        if self.jobs.is_some() {
            return true;
        }
        let mut state = self.state.lock();
        state.threads > 0 || self.start_worker(&mut state)
    }

    /// The loop of a worker thread.
    fn serve(&'static self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.ready.pop() {
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
        if self.has_retired.load(Ordering::Relaxed) && !is_in_callback() {
            let retired = {
                let mut retired = self.retired.lock();
                self.has_retired.store(false, Ordering::Relaxed);
                mem::take(&mut *retired)
            };
            drop(retired);
        }
    }
}

/// Queues a long command for the workers.
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

/// Queues a command for a worker to advance.
pub fn advance(token: Token) {
    let mut token = Some(token);
    engine().enqueue(1, || Job::Advance(token.take().expect("one helper")));
}

/// Advances commands that are ready.
///
/// The completion of one may make the next one ready, and so on. Nested calls leave their commands to the outermost
/// one, since recursion could overflow the stack.
pub fn dispatch(ready: Vec<Token>) {
    if ready.is_empty() {
        return;
    }
    let mut ready = Some(ready);
    let outermost = READY.try_with(|queue| {
        let mut queue = queue.borrow_mut();
        let is_outermost = queue.is_none();
        let queue = queue.get_or_insert_default();
        for token in ready.take().into_iter().flatten() {
            queue.push(token.priority(), token);
        }
        is_outermost
    });
    match outermost {
        Ok(true) => {}
        Ok(false) => return,
        // The thread is exiting and its thread-locals are destroyed: workers take over.
        Err(_) => return ready.into_iter().flatten().for_each(advance),
    }
    let next = || {
        READY.with_borrow_mut(|queue| {
            let token = queue.as_mut()?.pop();
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

/// Whether a worker takes over what must not be done in a callback of the native runtime.
pub fn may_have_callbacks() -> bool {
    engine().has_worker()
}

/// Runs `work` as part of a callback of the native runtime, which must not be called from there.
pub fn in_callback(work: impl FnOnce()) {
    let before = IN_CALLBACK.replace(true);
    work();
    IN_CALLBACK.set(before);
}

/// Whether this thread is in a callback of the native runtime.
pub fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

/// Drops an object that may hold the last reference to a native object: later, on a thread that is not in a callback
/// and holds no lock.
pub fn retire(object: impl Send + 'static) {
    let engine = engine();
    engine.retired.lock().push(Box::new(object));
    engine.has_retired.store(true, Ordering::Relaxed);
}

/// As [`retire`], but at once outside of callbacks. The caller must hold no lock.
pub fn retire_or_drop(object: impl Send + 'static) {
    if is_in_callback() {
        retire(object);
    }
}

/// Drops the retired objects.
pub fn release_retired() {
    if let Some(engine) = current() {
        engine.release_retired();
    }
}

/// The engine, if it was created.
fn current() -> Option<&'static Engine> {
    #[cfg(test)]
    if let Some(simulated) = SIMULATED.get() {
        return Some(simulated);
    }
    // SAFETY: ENGINE holds null or a leaked box.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}
