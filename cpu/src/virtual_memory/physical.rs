//! Physical memory, which is used once it is mapped.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::check_size;
use crate::abi::arguments::{check_flags, input_structure, output, output_structure, structures};
use crate::abi::result::ZeResult;
use crate::context::Context;
use crate::device::{self, Device};
use crate::handle::{object, register, resolve, retire};
use crate::memory::{Share, accounting, exports, memory_file};

structures! {
    sys::ze_physical_mem_desc_t = sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC;
    extensions::ze_physical_mem_properties_t =
        extensions::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES;
}

/// `ze_physical_mem_flags_t` up to 1.17.
const FLAGS: u32 = 0x3;

object!(
    PhysicalMemory,
    sys::_ze_physical_mem_handle_t,
    PhysicalMemory
);

/// Physical memory. It lives until its handle is destroyed and it is mapped nowhere.
#[derive(Debug)]
pub struct PhysicalMemory {
    id: u64,
    file: File,
    size: usize,
    share: Option<&'static Share>,
}

impl PhysicalMemory {
    /// `None` when the machine, or the device's share of it, has not enough.
    fn new(size: usize, share: Option<&'static Share>) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !accounting::reserve(size, share) {
            return None;
        }
        match memory_file(exports::file_length(size)) {
            Ok(file) => Some(Self {
                id: NEXT.fetch_add(1, Ordering::Relaxed),
                file,
                size,
                share,
            }),
            Err(_) => {
                accounting::release(size, share);
                None
            }
        }
    }

    /// The file that holds it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        accounting::release(self.size, self.share);
    }
}

/// `zePhysicalMemCreate`; the device may be null for memory on the host.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    desc: *mut sys::ze_physical_mem_desc_t,
    physical: *mut sys::ze_physical_mem_handle_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, physical) = unsafe { (input_structure(desc.cast_const())?, output(physical)?) };
    check_flags(desc.flags, FLAGS)?;
    let is_on_host = desc.flags & extensions::ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST != 0;
    let device = if is_on_host && device.is_null() {
        None
    } else {
        Some(device::find(device)?)
    };
    let share = device.filter(|_| !is_on_host).and_then(Device::share);
    check_size(desc.size)?;
    let memory =
        PhysicalMemory::new(desc.size, share).ok_or(sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)?;
    *physical = register(Arc::new(memory))?;
    Ok(())
}

/// `zePhysicalMemDestroy`; where it is mapped, it stays.
pub fn destroy(
    context: sys::ze_context_handle_t,
    physical: sys::ze_physical_mem_handle_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    retire::<PhysicalMemory>(physical).map(drop)
}

/// `zePhysicalMemGetProperties`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn properties(
    context: sys::ze_context_handle_t,
    physical: sys::ze_physical_mem_handle_t,
    properties: *mut extensions::ze_physical_mem_properties_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    let physical = resolve::<PhysicalMemory>(physical)?;
    // SAFETY: the caller vouches for the pointer.
    let properties = unsafe { output_structure(properties) }?;
    properties.id = physical.id;
    properties.size = physical.size as u64;
    Ok(())
}
