//! The threads that run tasks: started when first needed, never joined.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::task::Task;

struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Task>>,
    /// Threads that wait for work or are about to look for it.
    idle: usize,
    threads: usize,
}

/// The pool of this process, null until it is needed. Pools are never freed.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// How many processors this process may use.
pub fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// The most threads there will be: a few more than processors, as an operation may wait for another runtime.
fn most_threads() -> usize {
    processors() + 2
}

thread_local! {
    /// Whether this thread is setting tasks going, and those that are next.
    static GOING: RefCell<(bool, VecDeque<Arc<Task>>)> = const { RefCell::new((false, VecDeque::new())) };
}

/// Sets tasks going that may start: launches are given to OpenCL, short ones run here, all others go to the workers.
///
/// The end of a task may set the next one free, and that one the next; so what comes up meanwhile is left to the
/// outermost call, and no chain is too long for the stack.
pub fn dispatch(ready: Vec<Arc<Task>>) {
    if ready.is_empty() {
        return;
    }
    let outermost = GOING.try_with(|going| {
        let (going, next) = &mut *going.borrow_mut();
        next.extend(ready.iter().cloned());
        !mem::replace(going, true)
    });
    let Ok(outermost) = outermost else {
        // The thread is ending, and what it keeps for itself is gone: workers take over.
        ready.into_iter().for_each(enqueue);
        return;
    };
    if !outermost {
        return;
    }
    let next = || {
        GOING.with_borrow_mut(|(going, next)| {
            let task = next.pop_front();
            *going = task.is_some();
            task
        })
    };
    while let Some(task) = next() {
        if task.is_launch() {
            dispatch(task.take_off());
        } else if task.is_short() {
            dispatch(task.work());
        } else {
            enqueue(task);
        }
    }
}

fn pool() -> &'static Pool {
    let current = POOL.load(Ordering::Acquire);
    // SAFETY: what POOL holds is null or a leaked box.
    if let Some(pool) = unsafe { current.as_ref() } {
        return pool;
    }
    crate::fork::prepare();
    let made = Box::into_raw(Box::new(Pool {
        state: Mutex::default(),
        work: Condvar::new(),
    }));
    match POOL.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the box has just been leaked.
        Ok(_) => unsafe { &*made },
        Err(theirs) => {
            // SAFETY: nobody else has seen `made`; `theirs` is a leaked box.
            unsafe {
                drop(Box::from_raw(made));
                &*theirs
            }
        }
    }
}

/// Starts with a new pool, in the child after a fork: its parent's threads are not there.
pub fn forget() {
    POOL.store(ptr::null_mut(), Ordering::Release);
}

fn enqueue(task: Arc<Task>) {
    let pool = pool();
    let helpers = task.parts().min(processors());
    let mut state = pool.state.lock();
    for _ in 0..helpers {
        state.ready.push_back(Arc::clone(&task));
    }
    let waking = state.idle.min(helpers);
    while state.ready.len() > state.idle && state.threads < most_threads() {
        if thread::Builder::new()
            .name("zeusm-cpu".to_owned())
            .spawn(|| serve(pool))
            .is_err()
        {
            break;
        }
        state.threads += 1;
        state.idle += 1;
    }
    let nobody = state.threads == 0;
    drop(state);
    for _ in 0..waking {
        pool.work.notify_one();
    }
    if nobody {
        // The system refuses threads. Late is better than never.
        run(task);
    }
}

/// A worker's life.
fn serve(pool: &Pool) {
    let mut state = pool.state.lock();
    loop {
        if let Some(task) = state.ready.pop_front() {
            state.idle -= 1;
            drop(state);
            run(task);
            state = pool.state.lock();
            state.idle += 1;
        } else {
            pool.work.wait(&mut state);
        }
    }
}

/// Runs a task and sets going what its end sets free.
fn run(task: Arc<Task>) {
    dispatch(task.work());
}
