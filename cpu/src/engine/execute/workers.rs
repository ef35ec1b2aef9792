//! Worker threads, for long commands and for what other threads must not do.

#[cfg(test)]
use std::collections::VecDeque;
use std::mem;
use std::thread;

use zeusm_process::{Condvar, Mutex};

use crate::engine::order::primitives::THREAD_STACK;
use crate::engine::order::retired::release_retired;
use crate::engine::order::{ByPriority, Priority, Ready, ReadyList, dispatch};
use crate::system::{processor, signals};

/// A job for a worker.
pub type Job = Box<dyn FnOnce() + Send>;

/// The workers, which are started when they are needed.
#[derive(Default)]
pub struct Workers {
    state: Mutex<State>,
    work: Condvar,
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

/// The maximal number of threads: a few more than processors, as some may wait for memory.
fn most_threads() -> usize {
    processor::count() + 2
}

impl Workers {
    /// Those of a simulation.
    #[cfg(test)]
    pub fn simulated() -> Self {
        Self {
            jobs: Some(Mutex::default()),
            ..Self::default()
        }
    }

    /// Has a worker advance a command, on behalf of a thread that must not.
    pub fn advance(&'static self, command: Ready) {
        let priority = command.priority();
        let job = Box::new(move || dispatch(ReadyList::from([command]))) as Job;
        self.enqueue(priority, [job]);
    }

    /// Queues jobs, each for another thread. In a simulation one stands for all.
    pub fn enqueue(&'static self, priority: Priority, new: impl IntoIterator<Item = Job>) {
        #[cfg(test)]
        if let Some(jobs) = &self.jobs {
            return jobs.lock().extend(new.into_iter().next());
        }
        let mut state = self.state.lock();
        let before = state.ready.len();
        for job in new {
            state.ready.push(priority, job);
        }
        let waking = state.idle.min(state.ready.len() - before);
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
            job();
        }
    }

    /// Starts a worker; `false` where the system refuses to create a thread.
    fn start_worker(&'static self, state: &mut State) -> bool {
        let worker = thread::Builder::new()
            .name("zeusm-cpu".to_owned())
            .stack_size(THREAD_STACK);
        let serve = || {
            signals::leave_to_application();
            self.serve();
        };
        let started = worker.spawn(serve).is_ok();
        if started {
            state.threads += 1;
            state.idle += 1;
        }
        started
    }

    /// Whether there is one, which is started if there is none yet.
    pub fn has_some(&'static self) -> bool {
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
                job();
                release_retired();
                state = self.state.lock();
                state.idle += 1;
            } else {
                state = self.work.wait(state);
            }
        }
    }
}
