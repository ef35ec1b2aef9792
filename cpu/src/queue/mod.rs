//! Command queues, where regular lists are executed, and their fences.

pub mod fence;

use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::SmallVec;

use self::fence::Fence;
use crate::abi::arguments::{check_flags, input_structure, output};
use crate::abi::result::{ZeResult, ensure};
use crate::command_list::{Batch, QueueAttributes};
use crate::context::Context;
use crate::device::{self, QueueGroup};
use crate::engine::{Nothing, Order, Pins, Stream};
use crate::handle::{getters, object, register, resolve, retire};
use crate::system::clock::Deadline;
use zeusm_process::{ForkSafe, Mutex};

object!(Queue, sys::_ze_command_queue_handle_t, CommandQueue);

/// A command queue.
pub struct Queue {
    stream: Stream,
    group: QueueGroup,
    attributes: QueueAttributes,
    /// Held while lists are submitted, so that those of two threads do not mix.
    submission: ForkSafe<Mutex<()>>,
}

/// `zeCommandQueueCreate`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    desc: *const sys::ze_command_queue_desc_t,
    queue: *mut sys::ze_command_queue_handle_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    let on = device::find(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, queue) = unsafe { (input_structure(desc)?, output(queue)?) };
    let group = device::check_queue(desc)?;
    *queue = register(Arc::new(Queue {
        stream: Stream::new(on.engine(), desc.priority.into()),
        group,
        attributes: desc.into(),
        submission: ForkSafe::default(),
    }))?;
    Ok(())
}

/// `zeCommandQueueDestroy`; submitted commands are not affected.
pub fn destroy(queue: sys::ze_command_queue_handle_t) -> ZeResult {
    retire::<Queue>(queue).map(drop)
}

/// `zeCommandQueueExecuteCommandLists`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn execute(
    queue: sys::ze_command_queue_handle_t,
    count: u32,
    lists: *mut sys::ze_command_list_handle_t,
    fence: sys::ze_fence_handle_t,
) -> ZeResult {
    let owner = resolve::<Queue>(queue)?;
    // SAFETY: the caller vouches for the array.
    let batch = unsafe { Batch::collect(owner.group, count, lists) }?;
    let fence = if fence.is_null() {
        None
    } else {
        Some(Fence::of(fence, queue)?)
    };
    let submission = owner.submission.get().lock();
    batch.submit(&owner.stream)?;
    if let Some(fence) = fence {
        let (order, waits, signal) = (Order::Barrier, SmallVec::new(), Some(fence.signal()));
        let stream = &owner.stream;
        stream.submit(Nothing, Pins::new(), order, waits, signal);
    }
    drop(submission);
    if owner.attributes.mode == sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS {
        owner.stream.synchronize(Deadline::Never)?;
    }
    Ok(())
}

/// `zeFenceCreate`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn create_fence(
    queue: sys::ze_command_queue_handle_t,
    desc: *const sys::ze_fence_desc_t,
    fence: *mut sys::ze_fence_handle_t,
) -> ZeResult {
    resolve::<Queue>(queue)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, fence) = unsafe { (input_structure(desc)?, output(fence)?) };
    let signaled = sys::ZE_FENCE_FLAG_SIGNALED.0;
    check_flags(desc.flags, signaled)?;
    *fence = register(Arc::new(Fence::new(queue, desc.flags & signaled != 0)))?;
    Ok(())
}

/// `zeCommandQueueSynchronize`, `timeout` in nanoseconds.
pub fn synchronize(queue: sys::ze_command_queue_handle_t, timeout: u64) -> ZeResult {
    let done = resolve::<Queue>(queue)?
        .stream
        .synchronize(Deadline::after(timeout))?;
    ensure(done, sys::ZE_RESULT_NOT_READY)
}

getters! { Queue {
    /// `zeCommandQueueGetOrdinal`.
    ordinal: u32 = |queue| Ok(queue.group.ordinal());
    /// `zeCommandQueueGetIndex`.
    index: u32 = |queue| Ok(queue.attributes.index);
    /// `zeCommandQueueGetFlags`.
    creation_flags: u32 = |queue| Ok(queue.attributes.flags);
    /// `zeCommandQueueGetMode`.
    mode: sys::ze_command_queue_mode_t = |queue| Ok(queue.attributes.mode);
    /// `zeCommandQueueGetPriority`.
    priority: sys::ze_command_queue_priority_t = |queue| Ok(queue.attributes.priority);
}}
