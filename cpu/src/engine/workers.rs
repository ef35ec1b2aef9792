//! The threads that run tasks: started when first needed, never joined.

use std::collections::VecDeque;
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

/// Hands tasks that may start to the workers; returns at once.
pub fn dispatch(ready: Vec<Arc<Task>>) {
    for task in ready {
        enqueue(task);
    }
}

fn pool() -> &'static Pool {
    let current = POOL.load(Ordering::Acquire);
    // SAFETY: what POOL holds is null or a leaked box.
    if let Some(pool) = unsafe { current.as_ref() } {
        return pool;
    }
    static WATCH: OnceLock<()> = OnceLock::new();
    WATCH.get_or_init(|| {
        // SAFETY: the handler only stores to an atomic, which is allowed in the child of a threaded process.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    });
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

/// In the child after a fork: its parent's threads are not there, so it starts with a new pool.
extern "C" fn forget() {
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

/// Runs a task, and the short ones that its end sets free; longer ones go to whoever is idle.
fn run(task: Arc<Task>) {
    let mut mine = vec![task];
    while let Some(task) = mine.pop() {
        for next in task.work() {
            if next.is_short() {
                mine.push(next);
            } else {
                enqueue(next);
            }
        }
    }
}
