//! Address spaces (VMs) and bind operations.

use std::slice;

use rustix::io::{Errno, Result};

use super::device::Device;
use super::fence::signals;
use crate::memory::{AddressSpace, Backing, check_user};
use crate::report::{check_flags, not_simulated};
use crate::uapi::*;

const PAGE: u64 = 4096;

/// The flags of a new address space that have no effect here: jobs of any length run.
const CREATE_FLAGS: u32 = DRM_XE_VM_CREATE_FLAG_LR_MODE;
/// The flags of a bind operation that have their effect, or none because buffers are always resident and never compressed.
const FLAGS: u32 = DRM_XE_VM_BIND_FLAG_READONLY
    | DRM_XE_VM_BIND_FLAG_DECOMPRESS
    | DRM_XE_VM_BIND_FLAG_IMMEDIATE
    | DRM_XE_VM_BIND_FLAG_NULL
    | DRM_XE_VM_BIND_FLAG_DUMPABLE;
/// The flags that the kernel accepts only in VMs in fault mode.
const FAULT_MODE_FLAGS: u32 =
    DRM_XE_VM_BIND_FLAG_CPU_ADDR_MIRROR | DRM_XE_VM_BIND_FLAG_MADVISE_AUTORESET;

pub(super) fn create(device: &Device, argument: &mut drm_xe_vm_create) -> Result<()> {
    // Recoverable page faults are not simulated.
    if argument.flags & DRM_XE_VM_CREATE_FLAG_FAULT_MODE != 0 {
        return Err(Errno::INVAL);
    }
    check_flags("DRM_IOCTL_XE_VM_CREATE", argument.flags, CREATE_FLAGS);
    argument.vm_id = device.spaces.add(AddressSpace::default());
    Ok(())
}

/// Destroys the handle. Exec queues of the address space keep it alive.
pub(super) fn destroy(device: &Device, argument: &mut drm_xe_vm_destroy) -> Result<()> {
    device.spaces.remove(argument.vm_id).map(drop)
}

pub(super) fn bind(device: &Device, argument: &mut drm_xe_vm_bind) -> Result<()> {
    let space = device.spaces.get(argument.vm_id)?;
    // SAFETY: `num_binds` determines the active member of the union and the number of elements of the vector.
    let operations: &[drm_xe_vm_bind_op] = unsafe {
        match argument.num_binds {
            0 => &[],
            1 => slice::from_ref(&argument.__bindgen_anon_1.bind),
            count => slice::from_raw_parts(
                argument.__bindgen_anon_1.vector_of_binds as *const _,
                count as usize,
            ),
        }
    };
    for operation in operations {
        bind_one(device, &space, operation)?;
    }
    // SAFETY: the caller's array has that many elements.
    let fences = unsafe { signals(argument.syncs, argument.num_syncs) };
    fences.into_iter().for_each(|fence| fence.signal());
    Ok(())
}

fn bind_one(device: &Device, space: &AddressSpace, operation: &drm_xe_vm_bind_op) -> Result<()> {
    let (address, length) = (operation.addr, operation.range);
    // SAFETY: all members of the union are 64-bit integers.
    let place = unsafe { operation.__bindgen_anon_1.obj_offset };
    if length == 0 || !(address | length | place).is_multiple_of(PAGE) {
        return Err(Errno::INVAL);
    }
    match operation.op {
        DRM_XE_VM_BIND_OP_MAP | DRM_XE_VM_BIND_OP_MAP_USERPTR => {
            let backing = backing(device, operation, place)?;
            space.bind(address, length, backing, !is_read_only(operation));
        }
        DRM_XE_VM_BIND_OP_UNMAP => space.unbind(address, length),
        // Buffers are always resident, so there is nothing to migrate.
        DRM_XE_VM_BIND_OP_PREFETCH => {}
        other => not_simulated(format_args!("DRM_IOCTL_XE_VM_BIND with operation {other}")),
    }
    Ok(())
}

fn is_read_only(operation: &drm_xe_vm_bind_op) -> bool {
    operation.flags & DRM_XE_VM_BIND_FLAG_READONLY != 0
}

/// What is bound; `place` is an offset in a buffer or, by the operation, an address.
fn backing(device: &Device, operation: &drm_xe_vm_bind_op, place: u64) -> Result<Backing> {
    if operation.flags & FAULT_MODE_FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    check_flags("DRM_IOCTL_XE_VM_BIND", operation.flags, FLAGS);
    if operation.flags & DRM_XE_VM_BIND_FLAG_NULL != 0 {
        return Ok(Backing::Null);
    }
    if operation.op == DRM_XE_VM_BIND_OP_MAP_USERPTR {
        check_user(place, operation.range, !is_read_only(operation))?;
        return Ok(Backing::User(place));
    }
    let buffer = device.buffers.get(operation.obj)?;
    let end = place.checked_add(operation.range);
    let fits = end.is_some_and(|end| end <= buffer.size);
    let page = if buffer.is_vram {
        device.slot.model.vram_page
    } else {
        PAGE
    };
    let aligned = (operation.addr | operation.range).is_multiple_of(page);
    if fits && aligned {
        Ok(Backing::Buffer(buffer, place))
    } else {
        Err(Errno::INVAL)
    }
}

#[cfg(test)]
mod tests;
