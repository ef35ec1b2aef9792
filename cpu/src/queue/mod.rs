//! Command queues, where regular lists are executed, and their fences.

pub mod fence;

use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::SmallVec;
use zeusm_process::{ForkSafe, Mutex};

use self::fence::Fence;
use crate::abi::arguments::check_flags;
use crate::abi::entry::In;
use crate::abi::result::ZeResult;
use crate::command_list::{Batch, CommandList, Submitter};
use crate::context::Context;
use crate::device::{self, Device, QueueGroup};
use crate::engine::{Nothing, Order, Pins};
use crate::handle::{Named, Object, getters, hand_out, object};

object!(Queue, sys::_ze_command_queue_handle_t, CommandQueue);

/// A command queue.
pub struct Queue {
    device: &'static Device,
    submitter: Submitter,
    group: QueueGroup,
    /// Held while lists are submitted, so that those of two threads do not mix.
    submission: ForkSafe<Mutex<()>>,
}

/// `zeCommandQueueCreate`.
pub fn create(
    _: Arc<Context>,
    on: &'static Device,
    desc: In<'_, sys::ze_command_queue_desc_t>,
    queue: &mut sys::ze_command_queue_handle_t,
) -> ZeResult {
    let group = device::check_queue(&desc)?;
    let made = Queue {
        device: on,
        submitter: Submitter::new(on, &desc),
        group,
        submission: ForkSafe::default(),
    };
    hand_out(made, queue)
}

/// `zeCommandQueueExecuteCommandLists`.
pub fn execute(
    Named(owner, queue): Named<Queue>,
    lists: Vec<Arc<CommandList>>,
    fence: sys::ze_fence_handle_t,
) -> ZeResult {
    let batch = Batch::collect(owner.group, &lists)?;
    let fence = if fence.is_null() {
        None
    } else {
        Some(Fence::of(fence, queue)?)
    };
    let submission = owner.submission.get().lock();
    let stream = &owner.submitter.stream;
    batch.submit(stream)?;
    if let Some(fence) = fence {
        let (order, waits, signal) = (Order::Barrier, SmallVec::new(), Some(fence.signal()));
        stream.submit(Arc::new(Nothing), Pins::new(), order, waits, signal);
    }
    drop(submission);
    owner.submitter.synchronize_if_synchronous()
}

/// `zeFenceCreate`.
pub fn create_fence(
    Named(_, queue): Named<Queue>,
    desc: In<'_, sys::ze_fence_desc_t>,
    fence: &mut sys::ze_fence_handle_t,
) -> ZeResult {
    let signaled = sys::ZE_FENCE_FLAG_SIGNALED.0;
    check_flags(desc.flags, signaled)?;
    hand_out(Fence::new(queue, desc.flags & signaled != 0), fence)
}

/// `zeCommandQueueSynchronize`, `timeout` in nanoseconds.
pub fn synchronize(queue: Arc<Queue>, timeout: u64) -> ZeResult {
    queue.submitter.synchronize(timeout)
}

/// `zeDeviceSynchronize`: waits for all that was submitted to the queues and immediate lists of a device and of its tiles.
pub fn synchronize_device(device: &'static Device) -> ZeResult {
    let queues = Queue::table().all().into_iter();
    let queues = queues.filter(|queue| device.includes(queue.device));
    let outcome = queues.map(|queue| queue.submitter.synchronize(u64::MAX));
    outcome
        .chain([CommandList::synchronize_all(device)])
        .fold(Ok(()), ZeResult::and)
}

getters! { Queue {
    /// `zeCommandQueueGetOrdinal`.
    ordinal: u32 = |queue| Ok(queue.group.ordinal());
    /// `zeCommandQueueGetIndex`.
    index: u32 = |queue| Ok(queue.submitter.index);
    /// `zeCommandQueueGetFlags`.
    creation_flags: u32 = |queue| Ok(queue.submitter.flags);
    /// `zeCommandQueueGetMode`.
    mode: sys::ze_command_queue_mode_t = |queue| Ok(queue.submitter.mode);
    /// `zeCommandQueueGetPriority`.
    priority: sys::ze_command_queue_priority_t = |queue| Ok(queue.submitter.priority);
}}
