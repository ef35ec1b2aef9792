//! Fences, which a queue sets when it has executed lists.

use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::result::ZeResult;
use crate::engine::Signal;
use crate::event::wait;
use crate::handle::{object, resolve};

object!(Fence, sys::_ze_fence_handle_t, Fence);

/// A fence of a queue.
pub struct Fence {
    signal: Arc<Signal>,
    queue: usize,
}

impl Fence {
    /// A fence of the queue with this handle, initially `signaled` or not.
    pub fn new(queue: sys::ze_command_queue_handle_t, signaled: bool) -> Self {
        Self {
            signal: Arc::new(Signal::new(signaled, false)),
            queue: queue as usize,
        }
    }

    /// The fence that `handle` names, which must be of `queue`.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT` when it is no live fence of that queue.
    pub fn of(
        handle: sys::ze_fence_handle_t,
        queue: sys::ze_command_queue_handle_t,
    ) -> ZeResult<Arc<Self>> {
        resolve::<Self>(handle)
            .ok()
            .filter(|fence| fence.queue == queue as usize)
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT)
    }

    /// The signal that a queue must set after executing lists.
    pub fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.signal)
    }
}

/// `zeFenceHostSynchronize`, `timeout` in nanoseconds.
pub fn host_synchronize(fence: Arc<Fence>, timeout: u64) -> ZeResult {
    wait(&fence.signal, timeout)?;
    fence.signal.outcome()
}

/// `zeFenceQueryStatus`. It does not report the errors of commands, as `zeEventQueryStatus` does not.
pub fn query_status(fence: Arc<Fence>) -> ZeResult {
    wait(&fence.signal, 0)
}

/// `zeFenceReset`.
pub fn reset(fence: Arc<Fence>) -> ZeResult {
    fence.signal.reset();
    Ok(())
}
