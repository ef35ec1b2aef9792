//! Something that has happened or not: what events, fences and finished tasks have in common.

use std::hint;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use super::task::Task;
use crate::clock::Deadline;

/// How often a waiting thread looks before it goes to sleep: a few microseconds.
const SPINS: u32 = 300;

/// A flag that host threads can sleep on and that sets tasks free.
#[derive(Default)]
pub struct Signal {
    set: AtomicBool,
    tasks: Mutex<Vec<Arc<Task>>>,
    changed: Condvar,
}

impl Signal {
    /// One that is set from the start.
    pub fn already_set() -> Self {
        Self {
            set: AtomicBool::new(true),
            ..Self::default()
        }
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Sets it, wakes every host thread that waits, and returns the tasks that have nothing left to wait for.
    #[must_use]
    pub fn set(&self) -> Vec<Arc<Task>> {
        let waiting = {
            let mut tasks = self.tasks.lock();
            self.set.store(true, Ordering::Release);
            self.changed.notify_all();
            mem::take(&mut *tasks)
        };
        waiting.into_iter().filter(Task::unblock).collect()
    }

    /// Unsets it.
    pub fn reset(&self) {
        self.set.store(false, Ordering::Release);
    }

    /// Makes `task` wait for the signal, unless it is set already.
    pub fn block(&self, task: &Arc<Task>) {
        let mut tasks = self.tasks.lock();
        if !self.is_set() {
            task.block();
            tasks.push(Arc::clone(task));
        }
    }

    /// Waits on the host; `false` when the deadline passes first.
    pub fn wait(&self, deadline: Deadline) -> bool {
        if self.is_set() {
            return true;
        }
        if matches!(deadline, Deadline::Now) {
            return false;
        }
        for _ in 0..SPINS {
            hint::spin_loop();
            if self.is_set() {
                return true;
            }
        }
        let mut tasks = self.tasks.lock();
        while !self.is_set() {
            match deadline {
                Deadline::Now => return false,
                Deadline::Never => self.changed.wait(&mut tasks),
                Deadline::At(moment) => {
                    if self.changed.wait_until(&mut tasks, moment).timed_out() {
                        return self.is_set();
                    }
                }
            }
        }
        true
    }
}
