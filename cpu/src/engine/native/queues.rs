//! All native queues of a process.

use super::queue::NativeQueue;
use super::wait::Waiter;
use crate::engine::order::{Home, QueueNumber};

/// The number of native queues, and so of independent sequences of kernels that can overlap.
pub const NATIVE_QUEUES: usize = 16;

/// The native queues, which live as long as the process.
#[derive(Clone, Copy)]
pub struct NativeQueues(&'static [NativeQueue; NATIVE_QUEUES]);

impl NativeQueues {
    /// New ones, without commands.
    pub fn new() -> Self {
        let waiter: &'static Waiter = Box::leak(Box::default());
        let queues = std::array::from_fn(|number| NativeQueue::new(QueueNumber(number), waiter));
        let queues: &'static _ = Box::leak(Box::new(queues));
        waiter.look_at(|| queues.iter().find_map(NativeQueue::last));
        Self(queues)
    }

    /// The queue with a number.
    pub fn get(&self, number: QueueNumber) -> &'static NativeQueue {
        &self.0[number.0 % NATIVE_QUEUES]
    }

    /// Assigns a queue to a stream: the one that is assigned to the fewest.
    pub fn assign(&self) -> Box<dyn Home> {
        let queue = self.0.iter().min_by_key(|queue| queue.streams());
        let queue = queue.unwrap_or(&self.0[0]);
        queue.assign();
        Box::new(Assigned(queue))
    }
}

/// A queue as long as it is assigned to a stream.
struct Assigned(&'static NativeQueue);

impl Home for Assigned {
    fn number(&self) -> QueueNumber {
        self.0.number()
    }
}

impl Drop for Assigned {
    fn drop(&mut self) {
        self.0.unassign();
    }
}
