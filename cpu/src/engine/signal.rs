//! Something that has happened or not: what events, fences and finished tasks have in common.

use std::hint;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex};

use super::flight::Flight;
use super::task::Task;
use super::workers::dispatch;
use crate::clock::Deadline;

/// How often a waiting thread looks before it goes to sleep: a few microseconds.
const SPINS: u32 = 300;

/// A flag that host threads can sleep on and that sets tasks free.
#[derive(Default)]
pub struct Signal {
    set: AtomicBool,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    tasks: Vec<Arc<Task>>,
    /// What will set it, if that is in the air.
    flight: Option<Arc<Flight>>,
    /// What will set it, if that is for workers.
    task: Weak<Task>,
}

/// What will set a signal, as far as is known.
pub enum Setter<'a> {
    /// A launch in the air.
    Flight(&'a Arc<Flight>),
    /// A task that has not begun, or nothing yet.
    Task(Option<Arc<Task>>),
}

impl Signal {
    /// One that is set from the start.
    pub fn already_set() -> Self {
        let signal = Self::default();
        signal.set.store(true, Ordering::Relaxed);
        signal
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Sets it, wakes every host thread that waits, and returns the tasks that have nothing left to wait for.
    #[must_use]
    pub fn set(&self) -> Vec<Arc<Task>> {
        let waiting = {
            let mut waiting = self.waiting.lock();
            self.set.store(true, Ordering::Release);
            self.changed.notify_all();
            waiting.flight = None;
            waiting.task = Weak::new();
            mem::take(&mut waiting.tasks)
        };
        waiting.into_iter().filter(Task::unblock).collect()
    }

    /// Unsets it.
    pub fn reset(&self) {
        self.set.store(false, Ordering::Release);
    }

    /// Makes `task` come after what sets the signal, unless it is set already: a launch by way of OpenCL where that is
    /// possible, anything else by waiting.
    /// With `implied`, something else that the task follows is known to come after the same.
    pub fn precede(&self, task: &Arc<Task>, implied: bool) {
        let mut waiting = self.waiting.lock();
        if self.is_set() {
            return;
        }
        let setter = match &waiting.flight {
            Some(flight) => Setter::Flight(flight),
            None => Setter::Task(waiting.task.upgrade()),
        };
        if !task.follow(setter, implied) {
            task.block();
            waiting.tasks.push(Arc::clone(task));
        }
    }

    /// Tells that `flight` will set it.
    pub fn expect(&self, flight: &Arc<Flight>) {
        let mut waiting = self.waiting.lock();
        if !self.is_set() && !flight.has_landed() {
            waiting.flight = Some(Arc::clone(flight));
        }
    }

    /// Tells that `task` will set it.
    pub fn await_task(&self, task: &Arc<Task>) {
        self.waiting.lock().task = Arc::downgrade(task);
    }

    /// The tasks that wait for a signal which nobody can set any more.
    pub fn into_tasks(mut self) -> Vec<Arc<Task>> {
        mem::take(&mut self.waiting.get_mut().tasks)
    }

    /// Waits on the host; `false` when the deadline passes first.
    pub fn wait(&self, deadline: Deadline) -> bool {
        if self.is_set() {
            return true;
        }
        if matches!(deadline, Deadline::Now) {
            return false;
        }
        if matches!(deadline, Deadline::Never) {
            self.help();
        }
        self.spin();
        let mut waiting = self.waiting.lock();
        while !self.is_set() {
            match deadline {
                Deadline::Now => return false,
                Deadline::Never => self.changed.wait(&mut waiting),
                Deadline::At(moment) => {
                    if self.changed.wait_until(&mut waiting, moment).timed_out() {
                        return self.is_set();
                    }
                }
            }
        }
        true
    }

    /// Waits for what another thread is about to do, without taking part in anything.
    pub fn wait_idly(&self) {
        self.spin();
        let mut waiting = self.waiting.lock();
        while !self.is_set() {
            self.changed.wait(&mut waiting);
        }
    }

    /// Takes part in the work that will set it: better than to sleep until somebody else has done it.
    fn help(&self) {
        let (flight, task) = {
            let waiting = self.waiting.lock();
            (waiting.flight.clone(), waiting.task.upgrade())
        };
        if let Some(flight) = flight {
            return flight.join();
        }
        if let Some(task) = task {
            task.path().join();
            if task.is_for_workers() {
                dispatch(task.work());
            }
        }
    }

    /// Looks for a few microseconds.
    fn spin(&self) {
        for _ in 0..SPINS {
            hint::spin_loop();
            if self.is_set() {
                return;
            }
        }
    }
}

impl Drop for Signal {
    /// What waits for a signal that is never given goes too, one after another: chains of it can be longer than the
    /// stack is deep.
    fn drop(&mut self) {
        let mut lost = mem::take(&mut self.waiting.get_mut().tasks);
        while let Some(task) = lost.pop() {
            if let Some(task) = Arc::into_inner(task) {
                lost.append(&mut task.dismantle());
            }
        }
    }
}
