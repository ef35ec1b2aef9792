//! Exec queues and batch submission.

use std::sync::Arc;

use rustix::io::{Errno, Result};

use super::device::Device;
use super::fence::signals;
use crate::engine::{EngineClass, ExecQueue, Job};
use crate::memory::read_user;
use crate::report::not_simulated;
use crate::uapi::*;

pub(super) fn create(device: &Device, argument: &mut drm_xe_exec_queue_create) -> Result<()> {
    let space = device.spaces.get(argument.vm_id)?;
    let class = class(argument)?;
    let queue = ExecQueue::new(space, class, device.slot.model, Arc::clone(&device.lost))?;
    argument.exec_queue_id = device.queues.add(queue);
    Ok(())
}

/// The class of the engines on which a queue may run, of which there is one each.
fn class(argument: &drm_xe_exec_queue_create) -> Result<EngineClass> {
    // The hint changes the frequency only.
    let unknown = argument.flags & !DRM_XE_EXEC_QUEUE_LOW_LATENCY_HINT;
    if argument.width != 1 || argument.num_placements != 1 || unknown != 0 {
        not_simulated(format_args!(
            "an exec queue of width {} with {} placements and flags {unknown:#x}",
            argument.width, argument.num_placements
        ));
    }
    // `drm_xe_engine_class_instance`: class, instance, GT, padding.
    let mut instance = [0; size_of::<drm_xe_engine_class_instance>()];
    if !read_user(argument.instances, &mut instance) {
        return Err(Errno::FAULT);
    }
    let [class, instance, gt, _] =
        [0, 2, 4, 6].map(|at| u16::from_le_bytes([instance[at], instance[at + 1]]));
    match (u32::from(class), instance, gt) {
        (DRM_XE_ENGINE_CLASS_RENDER, 0, 0) => Ok(EngineClass::Render),
        (DRM_XE_ENGINE_CLASS_COPY, 0, 0) => Ok(EngineClass::Copy),
        (DRM_XE_ENGINE_CLASS_COMPUTE, 0, 0) => Ok(EngineClass::Compute),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn destroy(device: &Device, argument: &mut drm_xe_exec_queue_destroy) -> Result<()> {
    device.queues.remove(argument.exec_queue_id).map(drop)
}

pub(super) fn property(
    device: &Device,
    argument: &mut drm_xe_exec_queue_get_property,
) -> Result<()> {
    if argument.property != DRM_XE_EXEC_QUEUE_GET_PROPERTY_BAN {
        return Err(Errno::INVAL);
    }
    let queue = device.queues.get(argument.exec_queue_id)?;
    argument.value = queue.is_banned().into();
    Ok(())
}

pub(super) fn exec(device: &Device, argument: &mut drm_xe_exec) -> Result<()> {
    let queue = device.queues.get(argument.exec_queue_id)?;
    if argument.num_batch_buffer > 1 {
        return Err(Errno::INVAL); // Parallel exec queues, which take several batches, are not created.
    }
    if queue.is_banned() {
        return Err(Errno::CANCELED);
    }
    // SAFETY: the caller's array has that many elements.
    let fences = unsafe { signals(argument.syncs, argument.num_syncs) };
    queue.submit(Job {
        batch: argument.address,
        fences,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(class: u32, number: u16) -> Result<EngineClass> {
        let instance = drm_xe_engine_class_instance {
            engine_class: class as u16,
            engine_instance: number,
            ..Default::default()
        };
        super::class(&drm_xe_exec_queue_create {
            width: 1,
            num_placements: 1,
            instances: &raw const instance as u64,
            ..Default::default()
        })
    }

    #[test]
    fn a_queue_runs_on_an_engine_that_exists() {
        assert_eq!(class_of(DRM_XE_ENGINE_CLASS_COPY, 0), Ok(EngineClass::Copy));
        assert_eq!(
            class_of(DRM_XE_ENGINE_CLASS_COMPUTE, 0),
            Ok(EngineClass::Compute)
        );
        for (class, number) in [
            (DRM_XE_ENGINE_CLASS_COPY, 1),
            (DRM_XE_ENGINE_CLASS_VIDEO_DECODE, 0),
        ] {
            assert_eq!(class_of(class, number), Err(Errno::INVAL));
        }
    }
}
