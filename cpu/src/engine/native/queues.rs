//! All native queues of a process.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::queue::NativeQueue;
use super::wait::Waiter;
use crate::engine::order::{NATIVE_QUEUES, QueueNumber};

/// The native queues, which live as long as the process.
pub struct NativeQueues {
    all: &'static [NativeQueue; NATIVE_QUEUES],
    assigned: AtomicUsize,
}

impl NativeQueues {
    /// New ones, without commands.
    pub fn new() -> Self {
        let waiter: &'static Waiter = Box::leak(Box::default());
        let queues = std::array::from_fn(|number| NativeQueue::new(QueueNumber(number), waiter));
        let all: &'static _ = Box::leak(Box::new(queues));
        waiter.look_at(|| all.iter().find_map(NativeQueue::last));
        Self {
            all,
            assigned: AtomicUsize::new(0),
        }
    }

    /// The queue with a number.
    pub fn get(&self, number: QueueNumber) -> &'static NativeQueue {
        &self.all[number.0 % NATIVE_QUEUES]
    }

    /// The queue for another sequence: one after another.
    pub fn next(&self) -> QueueNumber {
        QueueNumber(self.assigned.fetch_add(1, Ordering::Relaxed) % NATIVE_QUEUES)
    }
}
