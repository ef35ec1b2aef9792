//! Native commands in flight, as threads that wait for them see them.

use std::ptr;

use super::in_flight::Progress;
use super::native::NativeQueue;
use super::native_wait::Request;
use crate::system::stack;

/// A native command in flight.
#[derive(Clone, Copy)]
pub struct Native {
    /// The queue that it is in.
    pub queue: &'static NativeQueue,
    position: u64,
}

impl Native {
    /// The command at a position of a queue.
    pub fn new(queue: &'static NativeQueue, position: u64) -> Self {
        Self { queue, position }
    }

    /// Waits for it inside the native runtime, helping to execute it, or executes it if it is queued, and completes it. `false`
    /// when another thread already does so, or when this one could end up executing the commands of other queues, or has a
    /// small stack.
    pub fn wait(&self) -> bool {
        let queue = self.queue;
        // The fake runtime of the simulation needs no stack.
        if !cfg!(test) && !stack::holds_kernels() {
            return false;
        }
        let mut has_executed = false;
        loop {
            match queue.progress(self.position) {
                Progress::Issued(event, position) => {
                    let waited = queue.wait_inside(&*event, position);
                    if waited {
                        queue.complete();
                    }
                    return waited;
                }
                Progress::Queued if has_executed => {
                    // The next one is not brief.
                    queue.issue_queued();
                    return false;
                }
                Progress::Queued => {
                    has_executed = queue.execute(self.position);
                    if !has_executed && !queue.spin_while_drained() {
                        return false;
                    }
                }
                Progress::Ended => {
                    queue.complete();
                    return true;
                }
                Progress::Flushing => queue.wait_for_flush(),
            }
        }
    }

    /// Asks for the help of another thread.
    pub fn request_help(&self) -> Request<'static> {
        self.queue.flush();
        self.queue.request_help()
    }

    /// Tells one command from another.
    pub fn identity(&self) -> (usize, u64) {
        (ptr::from_ref(self.queue) as usize, self.position)
    }
}
