//! Exec queues and batch submission.

use std::sync::Arc;

use super::device::Device;
use super::fence::signals;
use super::{Errno, IoctlResult};
use crate::engine::{ExecQueue, Job};
use crate::uapi::*;

pub(super) fn create(device: &Device, argument: &mut drm_xe_exec_queue_create) -> IoctlResult {
    let space = device.spaces.get(argument.vm_id)?;
    let queue = ExecQueue::new(space, device.model(), Arc::clone(&device.lost))?;
    argument.exec_queue_id = device.queues.add(queue);
    Ok(())
}

pub(super) fn destroy(device: &Device, argument: &mut drm_xe_exec_queue_destroy) -> IoctlResult {
    device.queues.remove(argument.exec_queue_id).map(drop)
}

pub(super) fn property(
    device: &Device,
    argument: &mut drm_xe_exec_queue_get_property,
) -> IoctlResult {
    if argument.property != DRM_XE_EXEC_QUEUE_GET_PROPERTY_BAN {
        return Err(Errno(libc::EINVAL));
    }
    let queue = device.queues.get(argument.exec_queue_id)?;
    argument.value = queue.is_banned().into();
    Ok(())
}

pub(super) fn exec(device: &Device, argument: &mut drm_xe_exec) -> IoctlResult {
    let queue = device.queues.get(argument.exec_queue_id)?;
    if argument.num_batch_buffer > 1 {
        return Err(Errno(libc::EINVAL)); // Parallel exec queues, which take several batches, are not created.
    }
    if queue.is_banned() {
        return Err(Errno(libc::ECANCELED));
    }
    // SAFETY: the caller's array has that many elements.
    let fences = unsafe { signals(argument.syncs, argument.num_syncs) };
    queue.submit(Job {
        batch: argument.address,
        fences,
    });
    Ok(())
}
