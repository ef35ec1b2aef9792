//! Fences: how the host learns that a queue has executed lists.

use std::sync::Arc;

use level_zero_sys as sys;

use crate::answer::{Answer, ensure};
use crate::arguments::{descriptor, flags, output, structures};
use crate::clock::Deadline;
use crate::engine::Signal;
use crate::handle::{object, register, resolve, retire};
use crate::queue::Queue;

structures! {
    sys::ze_fence_desc_t = sys::ZE_STRUCTURE_TYPE_FENCE_DESC;
}

object!(Fence, sys::_ze_fence_handle_t, Fence);

/// A fence of a queue.
pub struct Fence {
    signal: Arc<Signal>,
    queue: usize,
}

impl Fence {
    /// The fence that `handle` names, which must be of `queue`.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT` when it is no live fence of that queue.
    pub fn of(
        handle: sys::ze_fence_handle_t,
        queue: sys::ze_command_queue_handle_t,
    ) -> Answer<Arc<Self>> {
        resolve::<Self>(handle)
            .ok()
            .filter(|fence| fence.queue == queue as usize)
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT)
    }

    /// What a queue sets after lists.
    pub fn signal(&self) -> Arc<Signal> {
        self.signal.promise();
        Arc::clone(&self.signal)
    }
}

/// `zeFenceCreate`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    queue: sys::ze_command_queue_handle_t,
    desc: *const sys::ze_fence_desc_t,
    fence: *mut sys::ze_fence_handle_t,
) -> Answer {
    resolve::<Queue>(queue)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, fence) = unsafe { (descriptor(desc)?, output(fence)?) };
    let signaled = sys::ZE_FENCE_FLAG_SIGNALED.0;
    flags(desc.flags, signaled)?;
    let signal = Arc::new(Signal::new(desc.flags & signaled != 0, false));
    *fence = register(Arc::new(Fence {
        signal,
        queue: queue as usize,
    }))?;
    Ok(())
}

/// `zeFenceDestroy`.
pub fn destroy(fence: sys::ze_fence_handle_t) -> Answer {
    retire::<Fence>(fence).map(drop)
}

/// `zeFenceHostSynchronize`, `timeout` in nanoseconds.
pub fn host_synchronize(fence: sys::ze_fence_handle_t, timeout: u64) -> Answer {
    let fence = resolve::<Fence>(fence)?;
    ensure(
        fence.signal.wait(Deadline::after(timeout)),
        sys::ZE_RESULT_NOT_READY,
    )
}

/// `zeFenceQueryStatus`.
pub fn query_status(fence: sys::ze_fence_handle_t) -> Answer {
    host_synchronize(fence, 0)
}

/// `zeFenceReset`.
pub fn reset(fence: sys::ze_fence_handle_t) -> Answer {
    resolve::<Fence>(fence)?.signal.reset();
    Ok(())
}
