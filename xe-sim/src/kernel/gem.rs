//! Buffer objects: creation, mapping into the process, and PRIME export and import.

use std::ffi::{c_int, c_long};
use std::os::fd::RawFd;

use rustix::io::{Errno, Result};

use super::device::Device;
use crate::memory::Buffer;
use crate::report::{check_flags, log};
use crate::uapi::*;

/// The bit of system memory, region 0, in a placement mask.
const SYSTEM: u32 = 1;
const SYSTEM_PAGE: u64 = 4096;
/// The flags of a new buffer, which have no effect here: all buffers are resident, in linear form, and visible to the host.
const FLAGS: u32 = DRM_XE_GEM_CREATE_FLAG_DEFER_BACKING
    | DRM_XE_GEM_CREATE_FLAG_SCANOUT
    | DRM_XE_GEM_CREATE_FLAG_NEEDS_VISIBLE_VRAM
    | DRM_XE_GEM_CREATE_FLAG_NO_COMPRESSION;

/// The layout of fake `mmap` offsets on the device node: this bit, the handle, and the offset in the buffer. A process has fewer
/// descriptors, and so fewer buffers, than there are handles in it.
const MAP_OFFSET: u64 = 1 << 61;
const HANDLE_SHIFT: u32 = 40;
const HANDLES: u64 = (1 << 20) - 1;

pub(super) fn create(device: &Device, argument: &mut drm_xe_gem_create) -> Result<()> {
    let vram = device
        .vram
        .as_ref()
        .filter(|_| argument.placement & SYSTEM == 0);
    let page = match vram {
        Some(_) => device.slot.model.vram_page,
        None => SYSTEM_PAGE,
    };
    check_flags("DRM_IOCTL_XE_GEM_CREATE", argument.flags, FLAGS);
    if argument.placement == 0 || argument.size == 0 || !argument.size.is_multiple_of(page) {
        return Err(Errno::INVAL);
    }
    argument.handle = device.buffers.add(Buffer::new(argument.size, vram)?);
    log(format_args!("buffer {}: created", argument.handle));
    Ok(())
}

/// Closes the handle. Address spaces in which the buffer is bound keep it alive.
pub(super) fn close(device: &Device, argument: &mut drm_gem_close) -> Result<()> {
    log(format_args!("buffer {}: closed", argument.handle));
    device
        .buffers
        .remove(argument.handle)
        .map(drop)
        .map_err(|_| Errno::INVAL)
}

/// The offset of a buffer, or with the only known flag that of the PCI barrier page, which has no handle and exists on
/// discrete GPUs only. Intel's driver retries a failed request with a flag of i915, which must fail again.
pub(super) fn map_offset(device: &Device, argument: &mut drm_xe_gem_mmap_offset) -> Result<()> {
    match argument.flags {
        0 => {}
        DRM_XE_MMAP_OFFSET_FLAG_PCI_BARRIER if argument.handle == 0 && device.vram.is_some() => {
            argument.offset = MAP_OFFSET;
            return Ok(());
        }
        _ => return Err(Errno::INVAL),
    }
    device.buffers.get(argument.handle)?;
    argument.offset = MAP_OFFSET | u64::from(argument.handle) << HANDLE_SHIFT;
    Ok(())
}

/// Whether this is a fake `mmap` offset.
pub(crate) fn is_map_offset(offset: u64) -> bool {
    offset & MAP_OFFSET != 0 && offset >> 62 == 0
}

pub(super) fn map_target(
    device: &Device,
    offset: u64,
    flags: c_int,
) -> Result<(RawFd, c_int, c_long)> {
    let handle = offset >> HANDLE_SHIFT & HANDLES;
    if handle == 0 {
        // The PCI barrier page is writable; writes have no effect.
        let flags = flags & !libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        return Ok((-1, flags, 0));
    }
    let buffer = device
        .buffers
        .get(handle as u32)
        .map_err(|_| Errno::INVAL)?;
    let inside = offset & ((1 << HANDLE_SHIFT) - 1);
    Ok((buffer.descriptor(), flags, inside as c_long))
}

pub(super) fn export(device: &Device, argument: &mut drm_prime_handle) -> Result<()> {
    log(format_args!("buffer {}: to be exported", argument.handle));
    let buffer = device.buffers.get(argument.handle)?;
    argument.fd = buffer.export(argument.flags & libc::O_CLOEXEC as u32 != 0)?;
    log(format_args!(
        "buffer {}: is descriptor {}",
        argument.handle, argument.fd
    ));
    Ok(())
}

/// Imports a buffer. A buffer that the process already has keeps its handle, as in the kernel.
pub(super) fn import(device: &Device, argument: &mut drm_prime_handle) -> Result<()> {
    let buffer = Buffer::import(argument.fd, device.vram.as_ref())?;
    let identity = buffer.identity()?;
    let same = |known: &Buffer| known.identity().is_ok_and(|known| known == identity);
    argument.handle = match device.buffers.position(same) {
        Some(handle) => handle,
        None => device.buffers.add(buffer),
    };
    log(format_args!(
        "buffer {}: imported from descriptor {}",
        argument.handle, argument.fd
    ));
    Ok(())
}

#[cfg(test)]
mod tests;
